/* History: what changed, by whom, with its rows; back again, always tried first (a dry run), then done. */
import {get, post} from './api.js';
import {approval, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, fill, indexField, link, none, number, section, soft, table, time, to} from './dom.js';
import {countsOf, countsText} from './view_sites.js';

const KINDS = {
  registration: 'registered one', removal: 'removed one', list: 'sent a list', replace: 'replaced a list', scan: 'read its files', check: 'found new dates',
  undo: 'undid a change', restore: 'put an index back', configure: 'read the configuration',
  'site-add': 'added a site', 'site-update': 'changed a site', 'site-remove': 'removed a site', 'site-freeze': 'froze a site', 'site-thaw': 'thawed a site',
  'index-add': 'added an index', 'index-remove': 'removed an index', 'index-freeze': 'froze an index', 'index-thaw': 'thawed an index',
  'source-add': 'added a source', 'source-update': 'changed a source', 'source-remove': 'removed a source', 'token-add': 'added a token', 'token-revoke': 'ended a token',
};
/* Of no sitemaps, and not to be undone. */
const isOther = (kind) => kind === 'configure' || (kind.includes('-') && !/^(site|index)-remove$/.test(kind));
const BIG = 1000; /* kept in the tab */
const ROWS = 100; /* shown at once */
const SLOW = 100000; /* so many rows take a while */

const changeLink = (one) => link('#/change/' + one.revision, 'change ' + one.revision);
const kindText = (one) => KINDS[one.kind] || one.kind;
const VIA = {api: 'by the API', cli: 'by a command', source: 'by reading', config: 'by the configuration'};
const viaText = (one) => VIA[one.via] || one.via;

function sums(one) {
  return isOther(one.kind) ? [] : [[one.created, '+', 'new'], [one.updated, '~', 'changed'], [one.removed, '−', 'removed']].filter(([n]) => n > 0)
    .map(([n, sign, word]) => el('span', {class: 'sum'}, el('span', {'aria-hidden': 'true'}, sign), `${number(n)} ${word}`));
}

const totalOf = (one) => one.created + one.updated + one.removed;

export function changeLine(one) {
  return [time(one.at), ': ', el('strong', {}, one.by || 'the server'), ' ', kindText(one), one.kind.startsWith('token-') && one.via === 'cli' && ': ' + one.note, sums(one).length > 0 && [': ', sums(one)], ' (', changeLink(one), ')'];
}

const columns = [
  ['When', '', (one) => time(one.at)],
  ['Who', '', (one) => [el('strong', {}, one.by || ''), ' ', soft(viaText(one))]],
  ['What', '', (one) => [kindText(one), one.undoes ? [' (', link('#/change/' + one.undoes, 'change ' + one.undoes), ')'] : null, one.note ? el('span', {class: 'note'}, one.note) : null]],
  ['Sitemaps', '', (one) => (sums(one).length > 0 ? sums(one) : soft('none'))],
  ['Change', 'number', (one) => link('#/change/' + one.revision, String(one.revision))],
];

export async function history(context, where) {
  const asked = where.query;
  const indexes = (await get('/v1/indexes', {limit: 1000})).indexes;
  const index = indexField(indexes, asked.get('index'));
  const by = field({label: 'Token or source', name: 'by', value: asked.get('by') || ''});
  const kind = field({label: 'What', name: 'kind', value: asked.get('kind') || '', options: [['', 'Anything'], ...Object.entries(KINDS)]});
  const loc = field({label: 'URL of a sitemap', name: 'loc', value: asked.get('loc') || ''});
  const question = () => Object.fromEntries([index, by, kind, loc].map(({input}) => [input.name, input.value.trim()]).filter(([, value]) => value !== ''));
  const form = el('form', {class: 'search', role: 'search', novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    context.go(to('history', question()));
  }}, index.node, by.node, kind.node, loc.node, el('p', {class: 'field buttons'}, el('button', {type: 'submit', class: 'main'}, 'Search')));
  const results = el('div', {class: 'results'});
  const found = [];
  let next = null, from = 0;

  /* With a filter a call may find nothing and lead on. */
  const more = async () => {
    const had = found.length;
    do {
      const answer = await get('/v1/history', {...question(), after: next});
      found.push(...answer.changes);
      next = answer.next;
      from = answer.from_revision;
    } while (next && found.length === had);
    fill(results,
      found.length > 0 ? table('Changes, the newest first', columns, found) : none('No change is like that.'),
      next ? buttons(found.length < BIG ? button('Earlier ones', more) : `These are ${BIG}; narrow the search for earlier ones.`)
        : from > 1 && none(`What was before change ${from} is not kept any more.`));
  };
  await more();
  return {title: 'History', content: [form, results]};
}

/* ---- back again ---- */

function conflictsOf(answer, overwrite) {
  if (answer.conflicts_total === 0) return null;
  return [
    el('p', {}, overwrite.input.checked
      ? `${count(answer.conflicts_total, 'sitemap was', 'sitemaps were')} changed since and would be put back, too.`
      : `${count(answer.conflicts_total, 'sitemap was', 'sitemaps were')} changed since and would stay as they are:`),
    el('ul', {class: 'rows'}, answer.conflicts.slice(0, 10).map((one) => el('li', {class: 'url'}, one.loc))),
    overwrite.node,
  ];
}

/* Tries it, shows what would be, then does it. `path`, `query`: the call. */
function backDialog(context, {title, before, path, query, done}) {
  const told = el('div', {role: 'status'}, before);
  const overwrite = check({label: 'Put these back, too', name: 'overwrite'});
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
    const nothing = answer.created + answer.updated + answer.removed === 0;
    fill(told, nothing ? el('p', {}, 'Nothing would change.') : countsOf(answer), conflictsOf(answer, overwrite), allowed && allowed.node);
    tried = !nothing;
    self.submit.textContent = nothing ? 'Try again' : 'Do it';
    if (allowed) allowed.input.focus();
  };
  const self = dialog({
    title, content: told, action: 'See what would change',
    async run(dialogSelf) {
      if (!tried) {
        await trial(dialogSelf);
        return false;
      }
      const answer = await send(null, allowed ? allowed.read() : null);
      context.say(`${done}: ${countsText(answer)}.` + (answer.conflicts_total > 0 ? ` ${count(answer.conflicts_total, 'was', 'were')} changed since.` : ''));
      context.go('#/change/' + answer.revision);
      return true;
    },
  });
  overwrite.input.addEventListener('change', () => trial(self).catch((error) => self.fail(error)));
}

function undoDialog(context, one) {
  backDialog(context, {
    title: `Undo change ${one.revision}`, done: 'Undone', path: `/v1/history/${one.revision}/undo`, query: () => ({}),
    before: [el('p', {}, `What ${one.by || 'the server'} did (${kindText(one)}) is taken back, by a change of its own. First you see what that would be; nothing is written.`),
      totalOf(one) >= SLOW && none(`It has ${number(totalOf(one))} sitemaps: each of the two steps may take half a minute or more.`)],
  });
}

export function restoreDialog(context, index, revision) {
  const to = field({label: 'As it was after change', name: 'to', value: revision === null ? '' : String(revision), inputmode: 'numeric', hint: 'A number of the history. What others registered elsewhere is not touched.'});
  backDialog(context, {
    title: 'Put the index back as it was', done: 'Put back', path: '/v1/restore', query: () => ({index, to: to.input.value.trim()}),
    before: [el('p', {class: 'url'}, index), to.node],
  });
}

/* ---- one change ---- */

const FIELDS = [['lastmod', 'last modified'], ['digest', 'digest'], ['source', 'source'], ['index', 'index'], ['page', 'page']];
const valueOf = (side, name) => (side[name] === null ? 'none' : String(side[name]));

function difference(row) {
  if (row.before === null) return ['last modified ', valueOf(row.after, 'lastmod')];
  if (row.after === null) return ['last modified was ', valueOf(row.before, 'lastmod')];
  const lines = FIELDS.filter(([name]) => row.before[name] !== row.after[name])
    .map(([name, text]) => el('li', {}, text, ': ', el('del', {}, valueOf(row.before, name)), ' → ', el('ins', {}, valueOf(row.after, name))));
  return lines.length > 0 ? el('ul', {class: 'rows'}, lines) : 'only what is not shown here';
}

const rowColumns = [
  ['URL', 'url', (row) => (row.after ? link('#/entry/' + row.after.id, row.loc) : row.loc)],
  ['What', '', (row) => (row.before === null ? badge('good', 'New') : row.after === null ? badge('bad', 'Removed') : badge('', 'Changed'))],
  ['How', '', difference],
];

export async function change(context, where) {
  const one = await get('/v1/history/' + encodeURIComponent(where.id), {after: where.query.get('after')});
  const shown = el('div');
  let n = 0;
  const more = () => {
    n += ROWS;
    fill(shown, table(`${count(Math.min(n, one.rows.length), 'row', 'rows')} of ${number(totalOf(one))}`, rowColumns, one.rows.slice(0, n)),
      n < one.rows.length ? el('p', {}, button(`Next ${ROWS}`, more))
        : one.next && el('p', {}, link(`#/change/${one.revision}?after=${one.next}`, 'More rows')));
    if (n > ROWS) shown.querySelectorAll('tbody a')[n - ROWS]?.focus();
  };
  more();
  const names = new Set(one.rows.map((row) => (row.after || row.before).index));
  return {
    title: 'Change ' + one.revision,
    content: [
      facts([
        ['When', time(one.at)], ['Who', one.by], ['What', kindText(one)], ['How', viaText(one)],
        ['Undoes', one.undoes ? link('#/change/' + one.undoes, 'change ' + one.undoes) : null],
        ['Sitemaps', sums(one).length > 0 ? sums(one) : 'none'], ['Note', one.note], ['Request', one.request_id ? codeOf(one.request_id) : null],
      ]),
      context.may('write') && buttons(
        !isOther(one.kind) && button('Undo it', () => undoDialog(context, one)),
        [...names].slice(0, 3).map((index) => button('Put ' + new URL(index).pathname + ' back to here', () => restoreDialog(context, index, one.revision)))),
      section('Its sitemaps', one.rows.length > 0 ? shown : none('It has none.'),),
    ],
  };
}
