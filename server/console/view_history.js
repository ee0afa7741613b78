/* History: what changed, by whom, with its rows; back again, always tried first (a dry run), then done. */
import {get, post} from './api.js';
import {approval, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, fill, further, lines, link, listField, none, number, searchForm, section, soft, table, time, to} from './dom.js';
import {isPage, listOf, readLists, rowLink} from './view_entries.js';
import {countsOf, countsText} from './view_sites.js';

const KINDS = {
  registration: 'registered one', removal: 'removed one', list: 'sent a list', replace: 'replaced a list', scan: 'read its files', check: 'found new dates',
  split: 'split a large file', expiry: 'let old page URLs go', undo: 'undid a change', restore: 'put an index back', configure: 'read the configuration',
};
const DID = {add: 'added', update: 'changed', remove: 'removed', freeze: 'froze', thaw: 'thawed', revoke: 'ended'};
for (const [what, verbs] of Object.entries({'a site': 'add update remove freeze thaw', 'an index': 'add remove freeze thaw', 'a urlset': 'add update remove freeze thaw', 'a source': 'add update remove', 'a token': 'add revoke'}))
  for (const verb of verbs.split(' ')) KINDS[what.split(' ')[1] + '-' + verb] = DID[verb] + ' ' + what;
/* Of no rows, and not to be undone. */
const isOther = (kind) => kind === 'configure' || (kind.includes('-') && !/^(site|index|urlset)-remove$/.test(kind));
const BIG = 1000; /* kept in the tab */
const ROWS = 100; /* shown at once */
const SLOW = 100000; /* so many rows take a while */

const changeLink = (one) => link('#/change/' + one.revision, 'change ' + one.revision);
const kindText = (one) => KINDS[one.kind] || one.kind;
const viaText = (one) => 'by ' + ({api: 'the API', cli: 'a command', source: 'reading', config: 'the configuration'}[one.via] || one.via);

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
  ['Rows', '', (one) => (sums(one).length > 0 ? sums(one) : soft('none'))],
  ['Change', 'number', (one) => link('#/change/' + one.revision, String(one.revision))],
];

export async function history(context, where) {
  const asked = where.query;
  const index = listField('index', await readLists(), asked.get('index'));
  const by = field({label: 'Token or source', name: 'by', value: asked.get('by')});
  const kind = field({label: 'What', name: 'kind', value: asked.get('kind'), options: [['', 'Anything'], ...Object.entries(KINDS)]});
  const loc = field({label: 'URL', name: 'loc', value: asked.get('loc')});
  const question = () => Object.fromEntries([index, by, kind, loc].map(({input}) => [input.name, input.value.trim()]).filter(([, value]) => value !== ''));
  const form = searchForm([index, by, kind, loc], () => context.go(to('history', question())));
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
      table('Changes, the newest first', columns, found, 'No change is like that.', true),
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
    el('p', {}, `${count(answer.conflicts_total, 'row was', 'rows were')} changed since and would ${overwrite.input.checked ? 'be put back, too.' : 'stay as they are:'}`),
    lines(answer.conflicts.slice(0, 10).map((one) => el('span', {class: 'url'}, one.loc)), 'rows'),
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
      totalOf(one) >= SLOW && none(`It has ${number(totalOf(one))} rows: each of the two steps may take half a minute or more.`)],
  });
}

export function restoreDialog(context, index, revision) {
  const to = field({label: 'As it was after change', name: 'to', value: revision === null ? '' : String(revision), inputmode: 'numeric', hint: 'A number of the history. What others registered elsewhere is not touched.'});
  backDialog(context, {
    title: `Put ${new URL(index).pathname} back as it was`, done: 'Put back', path: '/v1/restore', query: () => ({index, to: to.input.value.trim()}),
    before: [el('p', {class: 'url'}, index), to.node],
  });
}

const FIELDS = {lastmod: 'last modified', digest: 'digest', source: 'source', index: 'index', page: 'page', images: 'images', alternates: 'other languages', news: 'news'};
const valueOf = (side, name) => (side[name] ? [side[name]].flat().map((one) => (typeof one === 'object' ? JSON.stringify(one) : one)).join(' ') : 'none');

function difference(row) {
  if (row.before === null) return ['last modified ', valueOf(row.after, 'lastmod')];
  if (row.after === null) return ['last modified was ', valueOf(row.before, 'lastmod')];
  const all = Object.entries(FIELDS).map(([name, text]) => [text, valueOf(row.before, name), valueOf(row.after, name)]).filter(([, before, after]) => before !== after);
  return all.length > 0 ? lines(all.map(([text, before, after]) => [text, ': ', el('del', {}, before), ' → ', el('ins', {}, after)]), 'rows') : 'only what is not shown here';
}

const rowColumns = [
  ['URL', 'url', (row) => (row.after ? rowLink(row.after) : row.loc)],
  ['What', '', (row) => (row.before === null ? badge('good', 'New') : row.after === null ? badge('bad', 'Removed') : badge('', 'Changed'))],
  ['How', '', difference],
];

export async function change(context, where) {
  const one = await get('/v1/history/' + encodeURIComponent(where.id), {after: where.query.get('after')});
  const shown = el('div');
  let n = 0;
  const more = () => {
    n += ROWS;
    fill(shown, table(`${count(Math.min(n, one.rows.length), 'row')} of ${number(one.next || where.query.has('after') ? totalOf(one) : one.rows.length)}`, rowColumns, one.rows.slice(0, n), 'It has none.', true),
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
        ['When', time(one.at)], ['Who', one.by], ['What', kindText(one)], ['How', viaText(one)],
        ['Undoes', one.undoes ? link('#/change/' + one.undoes, 'change ' + one.undoes) : null],
        ['Rows', sums(one).length > 0 ? sums(one) : 'none'], ['Note', one.note], ['Request', one.request_id ? codeOf(one.request_id) : null],
      ]),
      context.may('write') && buttons(
        !isOther(one.kind) && button('Undo it', () => undoDialog(context, one)),
        [...names].slice(0, 3).map((index) => button('Put ' + new URL(index).pathname + ' back to here', () => restoreDialog(context, index, one.revision)))),
      section('Its rows', shown),
    ],
  };
}
