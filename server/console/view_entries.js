/* Sitemaps of indexes and page URLs of urlsets: 100 at a time by cursor, never all; found by how the URL begins
 * (at once), by what it contains or its warnings (looked through, in steps); one; register, change, remove. */
import {get, getTagged, post, remove} from './api.js';
import {ago, alertBox, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, fill, lines, link, listField, none, number, outside, searchForm, section, soft, table, time, to} from './dom.js';

const LIMIT = 100;
const TYPING_MS = 250;

const SITEMAP = {calls: '/v1/sitemaps', list: 'index', one: 'sitemap', many: 'sitemaps', word: 'sitemap', view: 'entry'};
const PAGE_URL = {calls: '/v1/urls', list: 'urlset', one: 'url', many: 'urls', word: 'page URL', view: 'url'};

export const isUrlset = (list) => 'with' in list;
/* Of a row, or of a list; none: of an index. */
export const nounOf = (one) => (one && ('urlset' in one || isUrlset(one)) ? PAGE_URL : SITEMAP);
export const listOf = (row) => row[nounOf(row).list];
/* A page of a urlset, which is an entry of an index and nobody's to change. */
export const isPage = (row) => row.source.startsWith('urlset:');
export const rowLink = (row) => link(`#/${nounOf(row).view}/${row.id}`, row.loc);

export async function readLists() {
  const [{indexes}, {urlsets}] = await Promise.all(['indexes', 'urlsets'].map((kind) => get('/v1/' + kind, {limit: 1000})));
  return [...indexes, ...urlsets];
}

/* What the codes of `warnings` mean for who reads the index. */
const WARNINGS = {
  'lastmod-date-only': 'The date has no time. Bing wants time and offset.',
  'lastmod-too-coarse': 'The date has no day. It is kept, but not shown to crawlers.',
  'lastmod-set-back': 'The date went back by more than a year. Crawlers distrust that.',
  'lastmod-invalid': 'The date is invalid and was dropped.',
  'lastmod-in-future': 'The date is more than a day ahead and was dropped.',
  'lastmod-no-zone': 'The date has no time zone and was dropped.',
  'loc-long': 'The URL has more than 1,024 characters. Yandex ignores it.',
  'loc-no-sitemap': 'The URL names a folder, a page or robots.txt, where crawlers want a sitemap file.',
  'loc-amp-escaped': 'The URL holds &amp;. Write a plain &; it is escaped where needed.',
  'cross-host': 'The file is on another host. Yandex ignores it.',
  'scheme-differs': 'The file has another scheme than its index.',
  'pages-nearly-used-up': 'The site has 90 % of its index files or more.',
};

const warningText = (code) => WARNINGS[code] || code;

/* How a sitemap was found, and what to do. */
export const CHECKS = {
  new: ['', 'Not looked at yet'], good: ['good', 'Good'],
  empty: ['warn', 'Empty', 'Remove it, or put URLs in.'],
  gone: ['bad', 'Gone', 'Put the file back, or remove it here.'],
  'not-a-sitemap': ['bad', 'Not a sitemap', 'Serve the sitemap there, or remove it here.'],
  broken: ['bad', 'Broken', 'Correct what writes the file.'],
  refused: ['warn', 'Refused to this server', 'Let this server through the bot protection.'],
  unreachable: ['bad', 'Unreachable', 'Check DNS, certificate and web server.'],
};

export const checkBadge = ({state}) => badge(...(CHECKS[state] || ['', state]).slice(0, 2));
export const remedyOf = ({state}) => CHECKS[state]?.[2];

const warned = (entry) => entry.warnings.length > 0 ? ' Worth a look: ' + entry.warnings.map(warningText).join(' ') : '';

function registerDialog(context, lists, chosen) {
  const {calls, list, one, word} = nounOf(chosen);
  const loc = field({label: 'URL', name: 'loc', type: 'url', hint: 'Absolute, with https and host.'});
  const lastmod = field({label: 'Last modified (may be empty)', name: 'lastmod', hint: 'As 2026-11-22T08:30:00Z, or a date.'});
  const where = listField(list, lists.filter((other) => nounOf(other).list === list), chosen && list === 'urlset' && chosen.url, list === 'index' ? 'The one whose directory holds it' : 'Choose one');
  dialog({
    title: 'Register a ' + word, content: [loc.node, lastmod.node, where.node], action: 'Register',
    async run() {
      const json = {loc: loc.input.value.trim()};
      if (lastmod.input.value.trim() !== '') json.lastmod = lastmod.input.value.trim();
      if (where.input.value !== '') json[list] = where.input.value;
      const answer = await post(calls, {json});
      const made = answer[one];
      context.done((answer.created ? 'Registered. ' : answer.updated ? 'It was there; changed. ' : 'It was there already. ') +
        `It is in ${listOf(made)}, page ${made.page}.` + warned(made));
    },
  });
}

async function readTagged(context, row) {
  try {
    return await getTagged(`${nounOf(row).calls}/${row.id}`);
  } catch (error) {
    context.say(error.status === 404 ? 'It is not there any more.' : error.message);
    if (error.status === 404) context.refresh();
    return null;
  }
}

async function editDialog(context, row) {
  const found = await readTagged(context, row);
  if (!found) return;
  const {value: one, etag} = found, noun = nounOf(one);
  const lastmod = field({label: 'Last modified', name: 'lastmod', value: one.lastmod || '', hint: 'As 2026-11-22T08:30:00Z, or a date. Empty: none is told to crawlers.'});
  dialog({
    title: 'Change the date', content: [el('p', {class: 'url'}, one.loc), lastmod.node], action: 'Save',
    async run() {
      const text = lastmod.input.value.trim();
      const answer = await post(noun.calls, {json: {loc: one.loc, [noun.list]: listOf(one), lastmod: text === '' ? null : text}, match: etag});
      context.done((answer.updated ? 'Saved.' : 'That is the date it had.') + warned(answer[noun.one]));
    },
  });
}

async function removeDialog(context, row, then) {
  const found = await readTagged(context, row);
  if (!found) return;
  const {calls, list, word} = nounOf(row);
  dialog({
    title: `Remove this ${word}?`, danger: true, action: 'Remove',
    content: [el('p', {class: 'url'}, found.value.loc), el('p', {}, `It leaves the ${list}. ${list === 'index' ? 'The file' : 'The page'} itself stays where it is.`)],
    async run() {
      await remove(`${calls}/${row.id}`, {match: found.etag});
      context.say(context.hasHistory() ? 'Removed. It can be undone under History.' : 'Removed.');
      then();
    },
  });
}

/* "3 images, de, fr, news: The title" */
const extensions = ({images, alternates, news}) => [
  images && count(images.length, 'image'), alternates && Object.keys(alternates).join(', '), news && 'news: ' + news.title,
].filter(Boolean).join(', ');

const UNITS = {m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3};

/* When it leaves by itself; no later than a Date may be. */
function leaves(row, {expires}) {
  const since = +new Date(row.news?.publication_date || row.lastmod || row.registered_at);
  return new Date(Math.min(since + parseInt(expires) * UNITS[expires.at(-1)], 864e13)).toISOString();
}

const actionsOf = (context, one, then) => (isPage(one)
  ? link(to('entries', {index: new URL(one.index).origin + one.source.slice(7)}), 'Its page URLs')
  : context.may('write') && [
    button('Change', () => editDialog(context, one), '', one.loc), ' ',
    button('Remove', () => removeDialog(context, one, then), '', one.loc),
  ]);

function columnsOf(context, chosen, rows, again) {
  const urlset = chosen && isUrlset(chosen) && chosen;
  return [
    ['URL', 'url', rowLink],
    ['Last modified', '', (one) => (one.lastmod ? el('span', {class: 'date'}, one.lastmod) : soft('none'))],
    urlset && urlset.with.length > 0 && ['Has', 'has', (one) => extensions(one) || soft('none')],
    ['Page', 'number', (one) => number(one.page)],
    ['Source', '', (one) => one.source],
    ['Changed', '', (one) => ago(one.changed_at)],
    urlset && urlset.expires && ['Leaves', '', (one) => ago(leaves(one, urlset))],
    ['State', '', (one) => [
      one.check ? [checkBadge(one.check), ' ', remedyOf(one.check)] : isPage(one) ? badge('good', 'Served here') : soft('not observed'),
      one.warnings.length > 0 && el('ul', {class: 'warnings'}, one.warnings.map((code) => el('li', {title: warningText(code)}, badge('warn', code))))]],
    (context.may('write') || rows.some(isPage)) && ['Actions', 'actions', (one) => actionsOf(context, one, again)],
  ].filter(Boolean);
}

/* A person leaves the scheme and host away; "?": of which site? */
function wholeUrl(text, origin) {
  if (text === '' || /^https?:/i.test(text)) return text;
  return origin + (text.startsWith('/') ? '' : '/') + text;
}

export async function entries(context, where) {
  const lists = await readLists();
  const asked = where.query;
  const index = listField('index', lists, asked.get('index'), 'All indexes');
  const mode = field({label: 'URL', name: 'mode', value: asked.get('mode'), options: [['prefix', 'begins with'], ['loc', 'is exactly'], ['contains', 'contains']]});
  const text = field({label: 'Text', name: 'text', value: asked.get('text'), type: 'search'});
  const source = field({label: 'Source', name: 'source', value: asked.get('source')});
  const only = check({label: 'With warnings only', name: 'warned', checked: asked.get('warned') === '1'});
  const results = el('div', {class: 'results'});
  let behind = []; /* the cursors of the lists before this one */
  let run = 0;

  const values = () => {
    const chosen = lists.find((one) => one.url === index.input.value);
    const origin = chosen ? chosen.site : new Set(lists.map((one) => one.site)).size === 1 ? lists[0].site : '?';
    return {chosen, noun: nounOf(chosen), mode: mode.input.value, origin, raw: text.input.value.trim(), text: wholeUrl(text.input.value.trim(), origin), source: source.input.value.trim(), warned: only.input.checked};
  };
  const queryOf = (v, after) => ({
    [v.noun.list]: index.input.value, source: v.source, limit: LIMIT, after, warned: v.warned ? '1' : null, checks: v.noun === SITEMAP ? '1' : null,
    [v.mode]: v.mode === 'contains' ? v.raw : v.text,
  });
  const scans = (v) => v.warned || (v.mode === 'contains' && v.raw !== '');

  /* Where it looks through, it goes on until there is a page full, it is stopped, or all was looked at. */
  const load = async (moved) => {
    const mine = ++run, v = values(), slow = scans(v), found = [], from = behind.length * LIMIT;
    let after = behind.at(-1), looked = 0, stopped = false;
    adder.textContent = 'Register a ' + v.noun.word;
    const wrong = slow && !v.chosen ? 'Choose an index or a urlset: this search looks at each of its entries'
      : v.mode !== 'contains' && v.text.startsWith('?') && 'There are several sites: choose an index or a urlset, or write the whole URL';
    if (wrong) return fill(results, alertBox(new Error(wrong)));
    const total = v.chosen ? v.chosen.entries : null, said = el('span');
    if (slow) fill(results, el('p', {class: 'progress', role: 'status'}, said, ' ', button('Stop', () => { stopped = true; })));
    try {
      do {
        const answer = await get(v.noun.calls, {...queryOf(v, after), limit: LIMIT - found.length});
        if (mine !== run || (slow && !results.isConnected)) return;
        found.push(...answer[v.noun.many]);
        looked += answer.looked_at || 0;
        after = answer.next;
        said.textContent = `${number(looked)}${total !== null ? ' of ' + number(total) : ''} looked at, ${number(found.length)} found.`;
        while (slow && document.hidden && results.isConnected) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, {once: true}));
      } while (slow && after && found.length < LIMIT && !stopped);
    } catch (error) {
      if (!('status' in error)) throw error;
      if (mine === run) fill(results, alertBox(error));
      return;
    }
    const asked = v.raw || v.source || v.warned;
    fill(results,
      slow && none(said.textContent + (stopped && after ? ' Stopped.' : '')),
      table(`${number(from + 1)} to ${number(from + found.length)}${asked || total === null ? '' : ' of ' + number(total)} ${v.noun.word}s`,
        columnsOf(context, v.chosen, found, () => context.skip().then(() => load(true))), found, asked ? 'None is like that.' : 'None is registered yet.', true),
      buttons(
        behind.length > 0 && button('Back', () => { behind.pop(); load(true); }),
        after && button('Next ' + LIMIT, () => { behind.push(after); load(true); })));
    if (!moved) return;
    results.querySelector('table')?.scrollIntoView({block: 'nearest'});
    if (document.activeElement === document.body) document.getElementById('main').focus({preventScroll: true});
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
  const form = searchForm([index, mode, text, source, only], () => {
    clearTimeout(typing);
    search();
  });
  const adder = button('', () => registerDialog(context, lists, values().chosen), 'main');
  form.addEventListener('input', () => {
    clearTimeout(typing);
    if (mode.input.value === 'prefix') typing = setTimeout(search, TYPING_MS);
  });
  const slow = scans(values()); /* is seen at work */
  if (!slow) await load(false);
  return {
    title: 'Sitemaps',
    begin: () => slow && load(false),
    content: [context.may('write') && buttons(adder), form, results],
  };
}

const CHECK_FACTS = [
  ['status', 'Answered', number], ['detail', 'Says', String], ['line', 'Line', number], ['checked_at', 'Checked', time],
  ['good_at', 'Last good', time], ['since', 'So since', time], ['next_at', 'Next check', time], ['urls', 'URLs in it', number],
];

function checkFacts(found) {
  return section('The file itself, as it was found',
    el('p', {}, checkBadge(found), ' ', remedyOf(found), ' ', [found.code, ...found.remarks].map((code) => code && [codeOf(code), ' '])),
    facts(CHECK_FACTS.map(([name, label, say]) => [label, found[name] ? say(found[name]) : null])));
}

export async function entry(context, where) {
  const noun = where.view === 'url' ? PAGE_URL : SITEMAP;
  const one = await get(`${noun.calls}/${encodeURIComponent(where.id)}`);
  const urlset = noun === PAGE_URL && (await readLists()).find((list) => list.url === one.urlset);
  return {
    title: noun === SITEMAP ? 'Sitemap' : 'Page URL',
    content: [
      el('p', {}, outside(one.loc)),
      facts([
        ['Last modified', one.lastmod || 'none is told'],
        ['In the ' + noun.list, link(to('entries', {index: listOf(one)}), listOf(one))], ['Page', number(one.page)],
        ['Source', one.source], ['Digest', one.digest],
        ['Registered', time(one.registered_at)], ['Changed', time(one.changed_at)],
        ['Leaves', urlset && urlset.expires && time(leaves(one, urlset))],
      ]),
      one.images && section('Images', lines(one.images.map((url) => outside(url)))),
      one.alternates && section('In other languages', lines(Object.entries(one.alternates).map(([lang, url]) => [badge('', lang), ' ', outside(url)]))),
      one.news && section('News', facts([['Title', one.news.title], ['Published', time(one.news.publication_date)], ['Publication', `${one.news.publication.name} (${one.news.publication.language})`]])),
      one.warnings.length > 0 && section('Worth a look', lines(one.warnings.map((code) => [warningText(code), ' ', codeOf(code)]))),
      one.check && checkFacts(one.check),
      buttons(
        actionsOf(context, one, () => context.go('#/entries')),
        context.hasHistory() && link(to('history', {loc: one.loc}), 'Its history')),
    ],
  };
}
