/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* History: what changed, when, by whom and where, found by date, site and more; undo and restore, with a preview
 * (a dry run) first. */
import {get, post} from './api.js';
import {approval, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, fill, further, lines, link, listField, none, number, searchForm, section, soft, table, time, to} from './dom.js';
import {isPage, listOf, readLists, rowLink} from './view_entries.js';
import {countsOf, countsText} from './view_sites.js';

const KINDS = {
  registration: 'registered', removal: 'removed', list: 'registered a list', replace: 'replaced a list', scan: 'scanned its sitemaps', check: 'updated dates',
  split: 'split a large file', expiry: 'removed expired page URLs', undo: 'undid a change', restore: 'restored a list', configure: 'applied the configuration',
};
const DID = {add: 'added', update: 'changed', remove: 'removed', freeze: 'froze', thaw: 'thawed', revoke: 'revoked'};
for (const [what, verbs] of Object.entries({'a site': 'add update remove freeze thaw', 'an index': 'add remove freeze thaw', 'a urlset': 'add update remove freeze thaw', 'a source': 'add update remove', 'a token': 'add revoke'}))
  for (const verb of verbs.split(' ')) KINDS[what.split(' ')[1] + '-' + verb] = DID[verb] + ' ' + what;
const CHOICES = [['', 'Everything except dates changed by polls'], ['all', 'Everything'], ['check', 'Dates changed by polls'],
  ...Object.entries(KINDS).filter(([kind]) => kind !== 'check').map(([kind, text]) => [kind, text.charAt(0).toUpperCase() + text.slice(1)])];
/* They have no rows and cannot be undone. */
const isOther = (kind) => kind === 'configure' || (kind.includes('-') && !/^(site|index|urlset)-remove$/.test(kind));
const BIG = 1000; /* changes kept in the tab */
const ROWS = 100; /* shown at once */
const SLOW = 100000; /* an undo of this many rows takes a while */

const changeLink = (revision) => link('#/change/' + revision, 'change ' + revision);
const kindText = (one) => KINDS[one.kind] || one.kind;
const viaText = (one) => 'via ' + ({api: 'the API', cli: 'a command', source: 'a scan', config: 'the configuration'}[one.via] || one.via);
const totalOf = (one) => one.created + one.updated + one.removed;

function sums(one) {
  return isOther(one.kind) ? [] : [[one.created, '+', 'new'], [one.updated, '~', 'changed'], [one.removed, '−', 'removed']].filter(([n]) => n > 0)
    .map(([n, sign, word]) => el('span', {class: 'sum'}, el('span', {'aria-hidden': 'true'}, sign), `${number(n)} ${word}`));
}

/* "removed URL", "registered a list for SITE" */
function whatText(one) {
  const more = totalOf(one) - 1;
  return [
    kindText(one),
    one.undoes ? [': ', changeLink(one.undoes)] : one.restores ? [' as it was after ', changeLink(one.restores)] : null,
    one.loc && !one.list ? [/^re(gistration|moval)$/.test(one.kind) ? ' ' : ': ', el('span', {class: 'url'}, one.loc), more > 0 && ` and ${number(more)} more`] : one.site && [' for ', el('span', {class: 'url'}, one.site + (one.list || ''))],
  ];
}

const undoneText = (one) => one.undone_by && [' ', badge('', 'Undone'), ' by ', changeLink(one.undone_by)];

export function changeLine(one) {
  return [time(one.at), ': ', el('strong', {}, one.by || 'the server'), ' ', whatText(one), one.kind.startsWith('token-') && one.via === 'cli' && ': ' + one.note, sums(one).length > 0 && [': ', sums(one)], ' (', changeLink(one.revision), ')', undoneText(one)];
}

const columns = [
  ['When', '', (one) => time(one.at)],
  ['By', '', (one) => [el('strong', {}, one.by || ''), ' ', soft(viaText(one))]],
  ['What', 'what', (one) => [whatText(one), undoneText(one), one.note ? el('span', {class: 'note'}, one.note) : null]],
  ['Rows', '', (one) => (sums(one).length > 0 ? sums(one) : soft('none'))],
  ['Change', 'number', (one) => link('#/change/' + one.revision, String(one.revision))],
];

/* Beginning and end of a local day, for the API. */
const instant = (day, clock) => day && !isNaN(new Date(day + 'T' + clock)) ? new Date(day + 'T' + clock).toISOString().slice(0, 19) + 'Z' : '';

export async function history(context, where) {
  const asked = where.query;
  const [lists, {sites}] = await Promise.all([readLists(), get('/v1/sites', {limit: 1000})]);
  const from = field({label: 'From', name: 'from', type: 'date', value: asked.get('from')});
  const until = field({label: 'To', name: 'to', type: 'date', value: asked.get('to')});
  const site = field({label: 'Site', name: 'site', value: asked.get('site'), options: [['', 'All sites'], ...sites.map((one) => [one.origin, one.origin])]});
  const index = listField('index', lists, asked.get('index'));
  const by = field({label: 'Token or source', name: 'by', value: asked.get('by')});
  const kind = field({label: 'What', name: 'kind', value: asked.get('kind'), options: CHOICES});
  const loc = field({label: 'URL', name: 'loc', value: asked.get('loc')});
  const fields = [from, until, site, index, kind, by, loc];
  const question = () => Object.fromEntries(fields.map(({input}) => [input.name, input.value.trim()]).filter(([, value]) => value !== ''));
  const form = searchForm(fields, () => context.go(to('history', question())));
  const results = el('div', {class: 'results'});
  const found = [];
  let next = null, first = 0;

  /* With a filter, a call may find nothing although there is more. */
  const more = async () => {
    const had = found.length;
    do {
      const {from: begin, to: end, site: origin, ...rest} = question();
      const answer = await get('/v1/history', {...rest, site: rest.index ? null : origin, since: instant(begin, '00:00:00'), until: instant(end, '23:59:59'), after: next});
      found.push(...answer.changes);
      next = answer.next;
      first = answer.from_revision;
    } while (next && found.length === had);
    fill(results,
      table('Changes, newest first', columns, found, 'No change matches.', true),
      next ? buttons(found.length < BIG ? button('Show earlier changes', more) : `${BIG} changes are shown. Narrow the search to see earlier ones.`)
        : first > 1 && none(`Changes before change ${first} are no longer kept.`));
  };
  await more();
  const since = (days, text) => link(to('history', {from: new Date(Date.now() - days * 86400000).toLocaleDateString('sv')}), text);
  return {title: 'History', content: [buttons(since(1, 'Since yesterday'), since(7, 'Last 7 days')), form, results]};
}

/* ---- undo and restore ---- */

function conflictsOf(answer, overwrite) {
  if (answer.conflicts_total === 0) return null;
  return [
    el('p', {}, `${count(answer.conflicts_total, 'row has', 'rows have')} changed since and would ${overwrite.input.checked ? 'be overwritten.' : 'stay unchanged:'}`),
    lines(answer.conflicts.slice(0, 10).map((one) => el('span', {class: 'url'}, one.loc)), 'rows'),
    overwrite.node,
  ];
}

/* Previews, then does it. `path`, `query`: the call. */
function backDialog(context, {title, before, path, query, action, done}) {
  const preview = el('div', {role: 'status'});
  const overwrite = check({label: 'Overwrite these too', name: 'overwrite'});
  let tried = false, allowed = null;
  const send = (dry, max) => post(path, {query: {...query(), dry_run: dry, max_removed: max, on_conflict: overwrite.input.checked ? 'overwrite' : null}});
  const trial = async (self) => {
    let answer;
    allowed = null;
    try {
      answer = await send('1', null);
    } catch (error) {
      if (error.code !== 'shrink-guard') throw error;
      allowed = approval(error.body.would_remove, 'This');
      answer = await send('1', error.body.would_remove);
    }
    const nothing = totalOf(answer) === 0;
    fill(preview, nothing ? el('p', {}, 'Nothing would change.') : countsOf(answer), conflictsOf(answer, overwrite), allowed && allowed.node);
    tried = !nothing;
    self.submit.textContent = nothing ? 'Preview again' : action;
    if (allowed) allowed.input.focus();
  };
  const self = dialog({
    title, content: [before, preview], action: 'Preview',
    async run(dialogSelf) {
      if (!tried) {
        await trial(dialogSelf);
        return false;
      }
      const answer = await send(null, allowed ? allowed.read() : null);
      context.say(`${done}: ${countsText(answer)}.` + (answer.conflicts_total > 0 ? ` ${count(answer.conflicts_total, 'row has', 'rows have')} changed since.` : ''));
      if (dialogSelf.isOpen()) context.go('#/change/' + answer.revision);
      return true;
    },
  });
  overwrite.input.addEventListener('change', () => trial(self).catch((error) => self.fail(error)));
}

function undoDialog(context, one) {
  backDialog(context, {
    title: `Undo change ${one.revision}?`, action: 'Undo', done: 'Undone', path: `/v1/history/${one.revision}/undo`, query: () => ({}),
    before: [
      facts([['Change', whatText(one)], ['Site', one.site ? el('span', {class: 'url'}, one.site) : 'several or none'], ['By', one.by || 'the server'], ['When', time(one.at)]]),
      el('p', {}, 'The preview shows the result and writes nothing. The undo is a separate change.'),
      totalOf(one) >= SLOW && none(`It has ${number(totalOf(one))} rows: preview and undo may take half a minute each.`)],
  });
}

export function restoreDialog(context, index, revision) {
  const to = field({label: 'State after change', name: 'to', value: revision === null ? '' : String(revision), inputmode: 'numeric', hint: 'The number of a change in the history. Entries registered in other lists stay where they are.'});
  backDialog(context, {
    title: `Restore ${new URL(index).pathname}`, action: 'Restore', done: 'Restored', path: '/v1/restore', query: () => ({index, to: to.input.value.trim()}),
    before: [el('p', {class: 'url'}, index), to.node],
  });
}

const FIELDS = {lastmod: 'last modified', digest: 'digest', source: 'source', index: 'index', page: 'page', images: 'images', videos: 'videos', alternates: 'other languages', news: 'news'};
const valueOf = (side, name) => (side[name] ? [side[name]].flat().map((one) => (typeof one === 'object' ? JSON.stringify(one) : one)).join(' ') : 'none');

function difference(row) {
  if (row.before === null) return ['last modified ', valueOf(row.after, 'lastmod')];
  if (row.after === null) return ['last modified was ', valueOf(row.before, 'lastmod')];
  const all = Object.entries(FIELDS).map(([name, text]) => [text, valueOf(row.before, name), valueOf(row.after, name)]).filter(([, before, after]) => before !== after);
  return all.length > 0 ? lines(all.map(([text, before, after]) => [text, ': ', el('del', {}, before), ' → ', el('ins', {}, after)]), 'rows') : 'no visible field changed';
}

const rowColumns = [
  ['URL', 'url', (row) => (row.after ? rowLink(row.after) : row.loc)],
  ['What', '', (row) => (row.before === null ? badge('good', 'New') : row.after === null ? badge('bad', 'Removed') : badge('', 'Changed'))],
  ['Fields', '', difference],
];

/* An undone change can be undone again only for the rows that the first undo left unchanged. */
async function undoButton(context, one) {
  if (isOther(one.kind)) return null;
  const undo = one.undone_by && await get('/v1/history/' + one.undone_by).catch(() => null);
  const left = one.undone_by ? undo && totalOf(undo) < totalOf(one) : true;
  return left && button(one.undone_by ? 'Undo the rest' : 'Undo', () => undoDialog(context, one));
}

export async function change(context, where) {
  const one = await get('/v1/history/' + encodeURIComponent(where.id), {after: where.query.get('after')});
  const undo = context.may('write') && await undoButton(context, one);
  const shown = el('div');
  let n = 0;
  const more = () => {
    n += ROWS;
    fill(shown, table(`${count(Math.min(n, one.rows.length), 'row')} of ${number(one.next || where.query.has('after') ? totalOf(one) : one.rows.length)}`, rowColumns, one.rows.slice(0, n), one.next ? 'No rows in this part.' : 'This change has no rows.', true),
      n < one.rows.length ? el('p', {}, button(`Next ${ROWS}`, more))
        : further(one.next, `#/change/${one.revision}?after=${one.next}`, 'More rows'));
    if (n > ROWS) shown.querySelectorAll('tbody a')[n - ROWS]?.focus();
  };
  more();
  const names = new Set(one.rows.filter((row) => !isPage(row.after || row.before)).map((row) => listOf(row.after || row.before)));
  return {
    title: 'Change ' + one.revision,
    content: [
      facts([
        ['When', time(one.at)], ['By', [one.by || 'the server', ' ', soft(viaText(one))]], ['What', kindText(one)],
        [one.list ? 'List' : 'Site', one.site && el('span', {class: 'url'}, one.site + (one.list || ''))],
        ['Undoes', one.undoes ? changeLink(one.undoes) : null], ['Back to', one.restores ? changeLink(one.restores) : null], ['Undone by', one.undone_by ? changeLink(one.undone_by) : null],
        ['Rows', sums(one).length > 0 ? sums(one) : 'none'], ['Note', one.note], ['Request', one.request_id ? codeOf(one.request_id) : null],
      ]),
      context.may('write') && buttons(
        undo,
        [...names].slice(0, 3).map((index) => button('Restore ' + new URL(index).pathname + ' to this change', () => restoreDialog(context, index, one.revision), '', index))),
      section('Rows', shown),
    ],
  };
}
