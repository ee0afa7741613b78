/* Sitemaps: 100 at a time by cursor, never all; found by how the URL begins (at once), by what it
 * contains or its warnings (looked through, in steps); one entry; register, change, remove. */
import {get, getTagged, post, remove} from './api.js';
import {ago, alertBox, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, fill, indexField, link, none, number, outside, soft, table, time, to} from './dom.js';

const LIMIT = 100;
const TYPING_MS = 250;

/* What the codes of `warnings` mean for who reads the index. */
const WARNINGS = {
  'lastmod-date-only': 'The date has no time. Bing wants time and offset.',
  'lastmod-too-coarse': 'The date has no day. It is kept, but not shown to crawlers.',
  'lastmod-set-back': 'The date went back by more than a year. Crawlers distrust that.',
  'lastmod-invalid': 'The date that was sent is none, so it was dropped.',
  'lastmod-in-future': 'The date that was sent is more than a day ahead, so it was dropped.',
  'lastmod-no-zone': 'The date that was sent has no time zone, so it was dropped.',
  'loc-long': 'The URL has more than 1,024 characters. Yandex ignores it.',
  'loc-no-sitemap': 'The URL names a folder, a page or robots.txt, where crawlers want a sitemap file.',
  'loc-amp-escaped': 'The URL holds &amp;. Write a plain &; it is escaped where needed.',
  'cross-host': 'The file is on another host. Yandex ignores it.',
  'scheme-differs': 'The file has another scheme than its index.',
  'pages-nearly-used-up': 'The site has 90 % of its index files or more.',
};

function warningText(code) {
  return WARNINGS[code] || code;
}

/* How a sitemap was found where it is. */
export const CHECKS = {
  new: ['', 'Not looked at yet'], good: ['good', 'Good'], empty: ['warn', 'Empty'], gone: ['bad', 'Gone'], 'not-a-sitemap': ['bad', 'Not a sitemap'],
  broken: ['bad', 'Broken'], refused: ['warn', 'Refused to this server'], unreachable: ['bad', 'Unreachable'],
};

export function checkBadge(found) {
  return badge(...(CHECKS[found.state] || ['', found.state]));
}

/* ---- changing one ---- */

function warned(entry) {
  return entry.warnings.length > 0 ? ' Worth a look: ' + entry.warnings.map(warningText).join(' ') : '';
}

function registerDialog(context, indexes) {
  const loc = field({label: 'URL of the sitemap', name: 'loc', type: 'url', hint: 'Absolute, with https and host.'});
  const lastmod = field({label: 'Last modified (may be empty)', name: 'lastmod', hint: 'As 2026-11-22T08:30:00Z, or a date.'});
  const where = indexField(indexes, '', 'The one whose directory holds it');
  dialog({
    title: 'Register a sitemap', content: [loc.node, lastmod.node, where.node], action: 'Register',
    async run() {
      const json = {loc: loc.input.value.trim()};
      if (lastmod.input.value.trim() !== '') json.lastmod = lastmod.input.value.trim();
      if (where.input.value !== '') json.index = where.input.value;
      const answer = await post('/v1/sitemaps', {json});
      const made = answer.sitemap;
      context.done((answer.created ? 'Registered. ' : answer.updated ? 'It was there; changed. ' : 'It was there already. ') +
        `It is in ${made.index}, page ${made.page}.` + warned(made));
    },
  });
}

async function readTagged(context, id) {
  try {
    return await getTagged('/v1/sitemaps/' + id);
  } catch (error) {
    context.say(error.status === 404 ? 'It is not there any more.' : error.message);
    if (error.status === 404) context.refresh();
    return null;
  }
}

async function editDialog(context, id) {
  const found = await readTagged(context, id);
  if (!found) return;
  const {value: one, etag} = found;
  const lastmod = field({label: 'Last modified', name: 'lastmod', value: one.lastmod || '', hint: 'As 2026-11-22T08:30:00Z, or a date. Empty: none is told to crawlers.'});
  dialog({
    title: 'Change the date', content: [el('p', {class: 'url'}, one.loc), lastmod.node], action: 'Save',
    async run() {
      const text = lastmod.input.value.trim();
      const answer = await post('/v1/sitemaps', {json: {loc: one.loc, lastmod: text === '' ? null : text}, match: etag});
      context.done((answer.updated ? 'Saved.' : 'That is the date it had.') + warned(answer.sitemap));
    },
  });
}

async function removeDialog(context, id, then) {
  const found = await readTagged(context, id);
  if (!found) return;
  dialog({
    title: 'Remove this sitemap?', danger: true, action: 'Remove',
    content: [el('p', {class: 'url'}, found.value.loc), el('p', {}, 'It leaves the index. The file itself stays where it is.')],
    async run() {
      await remove('/v1/sitemaps/' + id, {match: found.etag});
      context.say(context.hasHistory() ? 'Removed. It can be undone under History.' : 'Removed.');
      then();
    },
  });
}

/* ---- the list ---- */

function columnsOf(context, again) {
  const columns = [
    ['URL', 'url', (one) => link('#/entry/' + one.id, one.loc)],
    ['Last modified', '', (one) => (one.lastmod ? el('span', {class: 'date'}, one.lastmod) : soft('none'))],
    ['Page', 'number', (one) => number(one.page)],
    ['Source', '', (one) => one.source],
    ['Changed', '', (one) => ago(one.changed_at)],
    ['State', '', (one) => (one.warnings.length > 0
      ? el('ul', {class: 'warnings'}, one.warnings.map((code) => el('li', {title: warningText(code)}, badge('warn', code))))
      : soft('fine'))],
  ];
  if (context.may('write'))
    columns.push(['Actions', 'actions', (one) => [
      button('Change', () => editDialog(context, one.id), '', one.loc), ' ',
      button('Remove', () => removeDialog(context, one.id, again), '', one.loc),
    ]]);
  return columns;
}

/* A person leaves the scheme and host away; "?": of which site? */
function wholeUrl(text, origin) {
  if (text === '' || /^https?:/i.test(text)) return text;
  return origin + (text.startsWith('/') ? '' : '/') + text;
}

export async function entries(context, where) {
  const indexes = (await get('/v1/indexes', {limit: 1000})).indexes;
  const asked = where.query;
  const index = indexField(indexes, asked.get('index'));
  const mode = field({label: 'URL', name: 'mode', value: asked.get('mode') || 'prefix', options: [['prefix', 'begins with'], ['loc', 'is exactly'], ['contains', 'contains']]});
  const text = field({label: 'Text', name: 'text', value: asked.get('text') || '', type: 'search'});
  const source = field({label: 'Source', name: 'source', value: asked.get('source') || ''});
  const only = check({label: 'With warnings only', name: 'warned', checked: asked.get('warned') === '1'});
  const results = el('div', {class: 'results'});
  const form = el('form', {class: 'search', role: 'search', novalidate: true},
    index.node, mode.node, text.node, source.node, only.node,
    el('p', {class: 'field buttons'}, el('button', {type: 'submit', class: 'main'}, 'Search')));
  let behind = []; /* the cursors of the lists before this one */
  let run = 0;

  const values = () => {
    const chosen = indexes.find((one) => one.url === index.input.value);
    const origin = chosen ? chosen.site : new Set(indexes.map((one) => one.site)).size === 1 ? indexes[0].site : '?';
    return {chosen, mode: mode.input.value, origin, raw: text.input.value.trim(), text: wholeUrl(text.input.value.trim(), origin), source: source.input.value.trim(), warned: only.input.checked};
  };
  const queryOf = (v, after) => ({
    index: index.input.value, source: v.source, limit: LIMIT, after, warned: v.warned ? '1' : null,
    [v.mode]: v.mode === 'contains' ? v.raw : v.text,
  });
  const scans = (v) => v.warned || (v.mode === 'contains' && v.raw !== '');

  /* What the list says of itself, above it. */
  const caption = (v, list, from) => {
    if (list.length === 0) return 'No sitemap';
    const plain = v.raw === '' && v.source === '' && !v.warned && v.chosen && v.chosen.entries !== null;
    return `${number(from + 1)} to ${number(from + list.length)}` + (plain ? ` of ${number(v.chosen.entries)}` : '') + ' sitemaps';
  };

  const showList = (v, list, next, from, extra) => {
    fill(results,
      extra,
      list.length > 0 ? table(caption(v, list, from), columnsOf(context, () => context.skip().then(() => load(true))), list)
        : none(v.raw || v.source || v.warned ? 'None is like that.' : 'None is registered yet.'),
      buttons(
        behind.length > 0 && button('Back', () => { behind.pop(); load(true); }),
        next && button('Next ' + LIMIT, () => { behind.push(next); load(true); })));
  };

  /* Goes on until there is a page full, it is stopped, or all was looked at. */
  const scan = async (v, mine) => {
    const list = [];
    let after = behind.at(-1) || null, looked = 0, stopped = false;
    const total = v.chosen.entries;
    const stop = button('Stop', () => { stopped = true; });
    const said = el('span', {});
    const bar = el('p', {class: 'progress', role: 'status'}, said, ' ', stop);
    fill(results, bar);
    do {
      const answer = await get('/v1/sitemaps', {...queryOf(v, after), limit: LIMIT - list.length});
      if (mine !== run || !results.isConnected) return;
      list.push(...answer.sitemaps);
      looked += answer.looked_at || 0;
      after = answer.next;
      said.textContent = `${number(looked)}${total !== null ? ' of ' + number(total) : ''} looked at, ${count(list.length, 'found', 'found')}.`;
      while (document.hidden && results.isConnected) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, {once: true}));
    } while (after && list.length < LIMIT && !stopped);
    showList(v, list, after, behind.length * LIMIT, none(said.textContent + (stopped && after ? ' Stopped.' : '')));
  };

  const load = async (moved) => {
    const mine = ++run;
    const v = values();
    try {
      if (scans(v) && !v.chosen) {
        fill(results, alertBox(new Error('Choose an index: this search looks at each of its entries')));
        return;
      }
      if (v.mode !== 'contains' && v.text.startsWith('?')) {
        fill(results, alertBox(new Error('There are several sites: choose an index, or write the whole URL')));
        return;
      }
      if (scans(v)) {
        await scan(v, mine);
      } else {
        const answer = await get('/v1/sitemaps', queryOf(v, behind.at(-1)));
        if (mine !== run) return;
        showList(v, answer.sitemaps, answer.next, behind.length * LIMIT);
      }
      if (moved && mine === run) {
        const top = results.querySelector('table');
        if (top) top.scrollIntoView({block: 'nearest'});
        if (document.activeElement === document.body) document.getElementById('main').focus({preventScroll: true});
      }
    } catch (error) {
      if (!('status' in error)) throw error;
      if (mine === run) fill(results, alertBox(error));
    }
  };
  /* The address keeps the question, so that it can be reloaded or sent on. */
  const search = () => {
    const v = values();
    const query = Object.entries({index: index.input.value, mode: v.raw && v.mode !== 'prefix' ? v.mode : '', text: v.raw, source: v.source, warned: v.warned ? '1' : ''}).filter(([, value]) => value);
    window.history.replaceState(null, '', '#/entries' + (query.length > 0 ? '?' + new URLSearchParams(query) : ''));
    behind = [];
    return load(false);
  };
  let typing = 0;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(typing);
    search();
  });
  form.addEventListener('input', () => {
    clearTimeout(typing);
    if (mode.input.value === 'prefix') typing = setTimeout(search, TYPING_MS);
  });
  const slow = scans(values()); /* is seen at work */
  if (!slow) await load(false);
  return {
    title: 'Sitemaps',
    begin: () => slow && load(false),
    content: [context.may('write') && buttons(button('Register a sitemap', () => registerDialog(context, indexes), 'main')), form, results],
  };
}

/* ---- one ---- */

const CHECK_FACTS = [
  ['status', 'Answered', number], ['detail', 'Says', String], ['line', 'Line', number], ['checked_at', 'Checked', time],
  ['good_at', 'Last good', time], ['since', 'So since', time], ['next_at', 'Next check', time], ['urls', 'URLs in it', number],
];

function checkFacts(found) {
  return [
    el('h2', {}, 'The file itself, as it was found'),
    el('p', {}, checkBadge(found), ' ', [found.code, ...found.remarks].map((code) => code && [codeOf(code), ' '])),
    facts(CHECK_FACTS.map(([name, label, say]) => [label, found[name] ? say(found[name]) : null])),
  ];
}

export async function entry(context, where) {
  const one = await get('/v1/sitemaps/' + encodeURIComponent(where.id));
  const problem = (await get('/v1/sources')).sources.filter((source) => source.name === one.source)
    .flatMap((source) => source.problems.map((found) => ({found, url: source.url + found.path}))).find(({url}) => url === one.loc);
  return {
    title: 'Sitemap',
    content: [
      el('p', {class: 'lead'}, outside(one.loc)),
      facts([
        ['Last modified', one.lastmod || 'none is told'],
        ['In the index', one.index], ['Page', number(one.page)],
        ['Source', one.source], ['Digest', one.digest],
        ['Registered', time(one.registered_at)], ['Changed', time(one.changed_at)],
      ]),
      one.warnings.length > 0 && [el('h2', {}, 'Worth a look'), el('ul', {}, one.warnings.map((code) => el('li', {}, warningText(code), ' ', codeOf(code))))],
      problem && [el('h2', {}, 'Refused by its source'), el('p', {}, `Line ${problem.found.line}, column ${problem.found.column}: ${problem.found.detail} `, codeOf(problem.found.code), '. The index shows its last good content.')],
      one.check && checkFacts(one.check),
      buttons(
        context.may('write') && button('Change the date', () => editDialog(context, one.id)),
        context.may('write') && button('Remove', () => removeDialog(context, one.id, () => context.go('#/entries')), 'danger'),
        context.hasHistory() && link(to('history', {loc: one.loc}), 'Its history')),
    ],
  };
}
