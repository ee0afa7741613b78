/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sitemaps of indexes and page URLs of urlsets, 100 at a time by cursor. Search by prefix (indexed), by substring or
 * warnings (a scan in steps). One entry. Register, change, remove. */
import {get, getTagged, post, remove} from './api.js';
import {ago, alertBox, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, fill, lines, link, listField, none, number, outside, searchForm, section, soft, table, time, to} from './dom.js';
import {named} from './view_crawlers.js';
import {foundBy, NAMES} from './view_engines.js';

const LIMIT = 100;
const TYPING_MS = 250;

const SITEMAP = {calls: '/v1/sitemaps', list: 'index', one: 'sitemap', many: 'sitemaps', word: 'sitemap', view: 'entry'};
const PAGE_URL = {calls: '/v1/urls', list: 'urlset', one: 'url', many: 'urls', word: 'page URL', view: 'url'};

export const isUrlset = (list) => 'with' in list;
/* Of a row, or of a list; none: of an index. */
export const nounOf = (one) => (one && ('urlset' in one || isUrlset(one)) ? PAGE_URL : SITEMAP);
export const listOf = (row) => row[nounOf(row).list];
/* A page of a urlset, which is an entry of an index and cannot be changed. */
export const isPage = (row) => row.source.startsWith('urlset:');
export const rowLink = (row) => link(`#/${nounOf(row).view}/${row.id}`, row.loc);

export async function readLists() {
  const [{indexes}, {urlsets}] = await Promise.all(['indexes', 'urlsets'].map((kind) => get('/v1/' + kind, {limit: 1000})));
  return [...indexes, ...urlsets];
}

/* What the codes of `warnings` mean. */
const WARNINGS = {
  'lastmod-date-only': 'The date has no time. Bing wants time and offset.',
  'lastmod-too-coarse': 'The date has no day. It is kept, but not shown to crawlers.',
  'lastmod-set-back': 'The date moved back by more than a year. Crawlers distrust that.',
  'lastmod-invalid': 'The date is invalid and was dropped.',
  'lastmod-in-future': 'The date is more than a day ahead and was dropped.',
  'lastmod-no-zone': 'The date has no time zone and was dropped.',
  'loc-long': 'The URL has more than 1,024 characters. Yandex ignores it.',
  'loc-no-sitemap': 'This is the URL of a folder, a page or robots.txt. Crawlers expect a sitemap file.',
  'loc-amp-escaped': 'The URL contains &amp;. Write a plain &; the server escapes it.',
  'cross-host': 'The file is on another host. Yandex ignores it.',
  'scheme-differs': 'The URL has a different scheme than its index.',
  'pages-nearly-used-up': 'The site has used 90 % or more of its index pages.',
};

const warningText = (code) => WARNINGS[code] || code;

/* The states of a checked sitemap, and what to do. */
export const CHECKS = {
  new: ['', 'Not checked yet'], good: ['good', 'Good'],
  empty: ['warn', 'Empty', 'Remove it, or add URLs to it.'],
  gone: ['bad', 'Gone', 'Restore the file, or remove the sitemap here.'],
  'not-a-sitemap': ['bad', 'Not a sitemap', 'Serve a sitemap at this URL, or remove it here.'],
  broken: ['bad', 'Broken', 'Fix the program that writes the file.'],
  refused: ['warn', 'Access denied', 'Allow this server in the bot protection.'],
  unreachable: ['bad', 'Unreachable', 'Check DNS, certificate and web server.'],
};

export const checkBadge = ({state}) => badge(...(CHECKS[state] || ['', state]).slice(0, 2));

/* What to do about a code of a check, of a rejected file or of a remark. */
const WRITE = 'Fix the program that writes the file.', SPLIT = 'Split it: a sitemap has at most 50,000 URLs and 50 MiB uncompressed.', DATES = 'Write dates with time and zone, never in the future.';
const REMEDIES = {
  'malformed-xml': WRITE, truncated: 'Write the file under another name, and rename it when it is complete.', 'not-gzip': 'Compress the file, or remove .gz from its name.',
  'malformed-gzip': 'Compress the file again.', 'file-too-large': SPLIT, 'too-many-urls': SPLIT, 'too-many-entries': SPLIT, 'split-too-large': SPLIT, 'gzip-bomb': SPLIT,
  'nested-index': 'Register the sitemaps that it lists instead: an index may not list an index.', 'not-a-sitemap': 'Put a sitemap at this URL, or remove it here.',
  'no-usable-url': 'Write absolute URLs of this site.', 'empty-file': 'Write at least one URL, or remove the file.', 'bot-wall': 'Exempt sitemaps from the bot protection.',
  'bad-name': 'Rename the file.', unreadable: 'Make the file readable for the server\'s user.', 'malformed-list': 'Write one URL on each line, and nothing else.',
  'not-utf8': 'Write it in UTF-8.', 'loc-relative': 'Write the whole URL, with https and host.', 'path-too-long': 'Use a shorter path.',
  'outside-site': 'List the pages of each host in a sitemap of that host, or declare the host as a cross host of the site.', 'outside-directory': 'Move the sitemap to the top of the site, or verify the site in the search consoles.',
  'scheme-differs': 'Use the scheme of the sitemap in its URLs.', 'lastmod-invalid': DATES, 'lastmod-no-zone': DATES, 'lastmod-in-future': DATES,
  'one-lastmod': 'Date each page by its own change, not by the build.', namespace: 'Use the namespace of sitemaps.org, version 0.9.',
  redirect: 'Serve it at its own URL, without a redirect loop or a redirect to another host or to http.', 'unexpected-status': 'Make the web server answer 200.',
  'gzip-unmarked': 'Name the file .gz, or send Content-Type: application/gzip.',
};
export const remedyOf = ({state, code}) => REMEDIES[code] || CHECKS[state]?.[2];
export const fileRemedy = ({code}) => REMEDIES[code] || WRITE;

/* What to do about a file or a member of a list that the index may not have. */
const PLACES = {
  'index-needed': 'Set the index of the source.', 'site-unknown': 'Add the site, or remove the URL at its source.',
  'outside-site': 'Add its host to the cross hosts of the site, or set an index of its own site in the source. If only http and https differ, correct the URL in the upstream\'s index, or set a map in the source.',
  'owned-by-another': 'If the owner is an old name of this source, remove that source. Otherwise remove the entry, or leave it to its owner.',
};
export const placeRemedy = (found) => PLACES[found.code] || fileRemedy(found);

const warned = (entry) => entry.warnings.length > 0 ? ' Warnings: ' + entry.warnings.map(warningText).join(' ') : '';

function registerDialog(context, lists, chosen) {
  const {calls, list, one, word} = nounOf(chosen);
  const loc = field({label: 'URL', name: 'loc', type: 'url', hint: 'Absolute, with https and host.'});
  const lastmod = field({label: 'Last modified (optional)', name: 'lastmod', hint: 'Such as 2026-11-22T08:30:00Z, or a date.'});
  const where = listField(list, lists.filter((other) => nounOf(other).list === list), chosen && list === 'urlset' && chosen.url, list === 'index' ? 'Choose by directory' : 'Choose one');
  dialog({
    title: 'Register a ' + word, content: [loc.node, lastmod.node, where.node], action: 'Register',
    async run() {
      const json = {loc: loc.input.value.trim()};
      if (lastmod.input.value.trim() !== '') json.lastmod = lastmod.input.value.trim();
      if (where.input.value !== '') json[list] = where.input.value;
      const answer = await post(calls, {json});
      const made = answer[one];
      context.done((answer.created ? 'Registered' : answer.updated ? 'Already registered; updated' : 'Already registered') +
        ` in ${listOf(made)}, page ${made.page}.` + warned(made));
    },
  });
}

async function readTagged(context, row) {
  try {
    return await getTagged(`${nounOf(row).calls}/${row.id}`);
  } catch (error) {
    context.say(error.status === 404 ? 'This entry no longer exists.' : error.message);
    if (error.status === 404) context.refresh();
    return null;
  }
}

async function editDialog(context, row) {
  const found = await readTagged(context, row);
  if (!found) return;
  const {value: one, etag} = found, noun = nounOf(one);
  const lastmod = field({label: 'Last modified', name: 'lastmod', value: one.lastmod || '', hint: 'Such as 2026-11-22T08:30:00Z, or a date. Empty: crawlers get no date.'});
  dialog({
    title: 'Change the date', content: [el('p', {class: 'url'}, one.loc), lastmod.node], action: 'Save',
    async run() {
      const text = lastmod.input.value.trim();
      const answer = await post(noun.calls, {json: {loc: one.loc, [noun.list]: listOf(one), lastmod: text === '' ? null : text}, match: etag});
      context.done((answer.updated ? 'Saved.' : 'Unchanged.') + warned(answer[noun.one]));
    },
  });
}

async function removeDialog(context, row, then) {
  const found = await readTagged(context, row);
  if (!found) return;
  const {calls, list, word} = nounOf(row);
  dialog({
    title: `Remove this ${word}?`, danger: true, action: 'Remove',
    content: [el('p', {class: 'url'}, found.value.loc), el('p', {}, `This removes it from ${listOf(row)}. ${list === 'index' ? 'The file' : 'The page'} itself is not deleted.`)],
    async run() {
      await remove(`${calls}/${row.id}`, {match: found.etag});
      context.say(context.hasHistory() ? 'Removed. You can undo this in History.' : 'Removed.');
      then();
    },
  });
}

/* "3 images, de, fr, news: The title" */
const extensions = ({images, videos, alternates, news}) => [
  images && count(images.length, 'image'), videos && count(videos.length, 'video'), alternates && Object.keys(alternates).join(', '), news && 'news: ' + news.title,
].filter(Boolean).join(', ');

const UNITS = {m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3};

/* When it expires, capped at the last Date. */
function expiry(row, {expires}) {
  const since = +new Date(row.news?.publication_date || row.lastmod || row.registered_at);
  return new Date(Math.min(since + parseInt(expires) * UNITS[expires.at(-1)], 864e13)).toISOString();
}

const actionsOf = (context, one, then) => (isPage(one)
  ? link(to('entries', {index: new URL(one.index).origin + one.source.slice(7)}), 'Page URLs')
  : context.may('write') && [
    button('Change', () => editDialog(context, one), '', one.loc), ' ',
    button('Remove', () => removeDialog(context, one, then), '', one.loc),
  ]);

function columnsOf(context, chosen, rows, again) {
  const urlset = chosen && isUrlset(chosen) && chosen;
  return [
    ['URL', 'url', rowLink],
    ['Last modified', '', (one) => (one.lastmod ? el('span', {class: 'date'}, one.lastmod) : soft('none'))],
    urlset && urlset.with.length > 0 && ['Extensions', 'has', (one) => extensions(one) || soft('none')],
    ['Page', 'number', (one) => number(one.page)],
    ['Source', '', (one) => one.source],
    ['Changed', '', (one) => ago(one.changed_at)],
    rows.some((one) => one.crawlers) && ['Crawlers', '', crawlersText],
    urlset && urlset.expires && ['Expires', '', (one) => ago(expiry(one, urlset))],
    ['State', '', (one) => [
      one.check ? [checkBadge(one.check), ' ', remedyOf(one.check)] : isPage(one) ? badge('good', 'Served here') : soft('not checked'),
      one.warnings.length > 0 && el('ul', {class: 'warnings'}, one.warnings.map((code) => el('li', {title: warningText(code)}, badge('warn', code))))]],
    (context.may('write') || rows.some(isPage)) && ['Actions', 'actions', (one) => actionsOf(context, one, again)],
  ].filter(Boolean);
}

/* Whether crawlers have the newest version of a sitemap that this server serves. */
const fetchBadge = ({current}) => (current === null ? badge('', 'Unknown') : current ? badge('good', 'Up to date') : badge('warn', 'Stale'));

function crawlersText({crawlers = []}) {
  const text = [['up to date: ', true], ['stale: ', false], ['unknown: ', null]].map(([what, is]) => [what, crawlers.filter((one) => one.current === is).map((one) => named(one.name))])
    .filter(([, names]) => names.length > 0).map(([what, names]) => what + names.join(', ')).join('; ');
  return text || soft('none yet');
}

function crawlersSection(one, sources) {
  const source = sources.find(({name}) => name === one.source);
  if (!one.crawlers && !source?.serve) return section('Crawlers', none('Another server serves this sitemap, so its fetches are not seen here. Import its access log: sitemapd crawlers import.'));
  return section('Crawlers', table('Crawlers that fetched it', [
    ['Crawler', '', (row) => link('#/crawler/' + encodeURIComponent(row.name), named(row.name))],
    ['State', '', fetchBadge],
    ['Last visit', '', (row) => ago(row.fetched_at)],
    ['Status', 'number', (row) => String(row.status)],
  ], one.crawlers || [], 'No crawler has fetched it from this server yet.'));
}

/* The report of each engine on a sitemap: an engine lists those of an index that have errors or warnings. */
async function enginesSection(one) {
  const {engines} = await get('/v1/engines');
  const say = async ({name}) => {
    const {sites} = await get(`/v1/engines/${name}/sitemaps`, {site: new URL(listOf(one)).origin});
    const find = (loc) => sites[0]?.sitemaps.find((row) => row.loc === loc);
    const own = find(one.loc), parent = find(listOf(one));
    const text = own ? foundBy(own) || 'no errors' : !parent?.read_at ? 'not read yet'
      : foundBy(parent) ? `no report on this one; ${foundBy(parent)} in the index, which was read` : 'no errors in the index, which was read';
    return [link('#/engine/' + name, NAMES[name] || name), ': ', text, (own || parent)?.read_at && [' ', ago((own || parent).read_at)], '.'];
  };
  return engines.length > 0 && section('Search engines', lines(await Promise.all(engines.map(say))));
}

/* The URLs to look up: a path is tried for each site. */
function wholeUrls(text, origins) {
  if (text === '' || /^https?:/i.test(text)) return [text];
  return origins.map((origin) => origin + (text.startsWith('/') ? '' : '/') + text);
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
  let behind = []; /* the places where the pages before this one begin */
  let run = 0;

  const values = () => {
    const chosen = lists.find((one) => one.url === index.input.value);
    const raw = text.input.value.trim(), sites = chosen ? [chosen.site] : [...new Set(lists.map((one) => one.site))];
    return {chosen, noun: nounOf(chosen), mode: mode.input.value, raw, texts: mode.input.value === 'contains' ? [raw] : wholeUrls(raw, sites), source: source.input.value.trim(), warned: only.input.checked};
  };
  const queryOf = (v, at, after) => ({
    [v.noun.list]: index.input.value, source: v.source, limit: LIMIT, after, warned: v.warned ? '1' : null, checks: v.noun === SITEMAP ? '1' : null,
    [v.mode]: v.texts[at],
  });
  const searches = (v) => v.warned || (v.mode === 'contains' && v.raw !== '');
  /* A list that reads many foreign rows: of a source, or by prefix in an index. */
  const scans = (v) => searches(v) || Boolean(v.source || (v.chosen && v.mode === 'prefix' && v.raw));

  /* Continues until a page is full, the user stops it, or there are no more. */
  const load = async (moved) => {
    const mine = ++run, v = values(), slow = scans(v), found = [], from = behind.length * LIMIT;
    let {at, after} = behind.at(-1) || {at: 0}, looked = 0, stopped = false;
    adder.textContent = 'Register a ' + v.noun.word;
    if (searches(v) && !v.chosen) return fill(results, none('Choose an index or a urlset: this search reads all of its entries.'));
    const total = v.chosen ? v.chosen.entries : null, said = el('span');
    if (slow) fill(results, el('p', {class: 'progress', role: 'status'}, said, ' ', button('Stop', () => { stopped = true; })));
    try {
      do {
        const answer = await get(v.noun.calls, {...queryOf(v, at, after), limit: LIMIT - found.length});
        if (mine !== run || (slow && !results.isConnected)) return;
        found.push(...answer[v.noun.many]);
        looked += answer.looked_at || 0;
        after = answer.next;
        if (!after) at++;
        said.textContent = `${number(looked)}${total !== null ? ' of ' + number(total) : ''} read, ${number(found.length)} found.`;
        while (slow && document.hidden && results.isConnected) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, {once: true}));
      } while (at < v.texts.length && found.length < LIMIT && !stopped);
    } catch (error) {
      if (!('status' in error)) throw error;
      if (mine === run) fill(results, alertBox(error));
      return;
    }
    const asked = v.raw || v.source || v.warned, more = at < v.texts.length;
    fill(results,
      slow && none(said.textContent + (stopped && more ? ' Stopped.' : '')),
      table(`${number(from + 1)} to ${number(from + found.length)}${asked || total === null ? '' : ' of ' + number(total)} ${v.noun.word}s`,
        columnsOf(context, v.chosen, found, () => context.skip().then(() => load(true))), found, asked ? 'No match.' : 'Nothing is registered yet.', true),
      buttons(
        behind.length > 0 && button('Back', () => { behind.pop(); load(true); }),
        more && button('Next ' + LIMIT, () => { behind.push({at, after}); load(true); })));
    if (!moved) return;
    results.querySelector('table')?.scrollIntoView({block: 'nearest'});
    if (document.activeElement === document.body) document.getElementById('main').focus({preventScroll: true});
  };
  /* The address keeps the search, so that it can be reloaded or shared. */
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
  const slow = scans(values()); /* shows its progress */
  if (!slow) await load(false);
  return {
    title: 'Sitemaps',
    begin: () => slow && load(false),
    content: [context.may('write') && buttons(adder), form, results],
  };
}

const CHECK_FACTS = [
  ['status', 'Status', number], ['detail', 'Detail', String], ['line', 'Line', number], ['checked_at', 'Checked', time],
  ['good_at', 'Last good', time], ['since', 'Since', time], ['next_at', 'Next check', time], ['urls', 'URLs', number],
];

function checkFacts(found) {
  return section('Last check of the file',
    el('p', {}, checkBadge(found), ' ', remedyOf(found), ' ', [found.code, ...found.remarks].map((code) => code && [codeOf(code), ' '])),
    facts(CHECK_FACTS.map(([name, label, say]) => [label, found[name] ? say(found[name]) : null])));
}

export async function entry(context, where) {
  const noun = where.view === 'url' ? PAGE_URL : SITEMAP;
  const one = await get(`${noun.calls}/${encodeURIComponent(where.id)}`);
  const {sources} = await get('/v1/sources');
  const urlset = noun === PAGE_URL && (await readLists()).find((list) => list.url === one.urlset);
  return {
    title: noun === SITEMAP ? 'Sitemap' : 'Page URL',
    content: [
      el('p', {}, outside(one.loc)),
      facts([
        ['Last modified', one.lastmod || 'none'],
        [noun.list === 'index' ? 'Index' : 'Urlset', link(to('entries', {index: listOf(one)}), listOf(one))], ['Page', number(one.page)],
        ['Source', one.source], ['Digest', one.digest],
        ['Registered', time(one.registered_at)], ['Changed', time(one.changed_at)],
        ['Expires', urlset && urlset.expires && time(expiry(one, urlset))],
      ]),
      one.images && section('Images', lines(one.images.map((url) => outside(url)))),
      one.videos && section('Videos', lines(one.videos.map((video) => [outside(video.content_loc || video.player_loc), ' ', video.title]))),
      one.alternates && section('Other languages', lines(Object.entries(one.alternates).map(([lang, url]) => [badge('', lang), ' ', outside(url)]))),
      one.news && section('News', facts([['Title', one.news.title], ['Published', time(one.news.publication_date)], ['Publication', `${one.news.publication.name} (${one.news.publication.language})`]])),
      one.warnings.length > 0 && section('Warnings', lines(one.warnings.map((code) => [warningText(code), ' ', codeOf(code)]))),
      one.check && checkFacts(one.check),
      noun === SITEMAP && !isPage(one) && [crawlersSection(one, sources), await enginesSection(one)],
      buttons(
        actionsOf(context, one, () => context.go('#/entries')),
        context.hasHistory() && link(to('history', {loc: one.loc}), 'History')),
    ],
  };
}
