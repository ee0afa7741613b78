/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sites with their indexes and urlsets: size, freeze and thaw, add; one list with its pages, the crawlers that have
 * them, and its replacement from a file. */
import {get, getTagged, patch, post, put} from './api.js';
import {ago, approval, badge, button, buttons, bytes, count, dialog, el, facts, field, fill, further, lines, link, none, number, outside, section, soft, table, time, to} from './dom.js';
import {named} from './view_crawlers.js';
import {CHECKS, isUrlset, nounOf, remedyOf} from './view_entries.js';
import {restoreDialog} from './view_history.js';
import {badText, failureText, fileNoun} from './view_sources.js';
import {foundBy, NAMES, STATES} from './view_engines.js';

const path = (url) => (url ? new URL(url).pathname : '');
const pathOf = (one) => (isUrlset(one) ? '/v1/urlsets/' : '/v1/indexes/') + one.id;
const entriesOf = (one) => to('entries', {index: one.url});

const stateOf = (one) => (one.frozen ? badge('warn', 'Frozen') : soft('open'));

/* `acts`: with buttons. */
export function indexColumns(acts, context) {
  return [
    ['Index', 'url', (one) => link('#/index/' + one.id, one.url)],
    ['Sitemaps', 'number', (one) => link(entriesOf(one), number(one.entries))],
    ['Pages', 'number', (one) => number(one.pages.length)],
    ['Size', 'number', (one) => bytes(one.bytes)],
    ['Changed', '', (one) => ago(one.changed_at)],
    ['State', '', (one) => stateOf(one)],
    ...(acts ? [['Actions', 'actions', (one) => freezeButton(context, pathOf(one), one.url, one.frozen)]] : []),
  ];
}

const withOf = (one) => [one.with.join(', ') || soft('none'), one.expires && `; page URLs expire after ${one.expires}`];

const urlsetColumns = (acts, context) => [
  ['Urlset', 'url', (one) => link('#/urlset/' + one.id, one.url)],
  ['Page URLs', 'number', (one) => link(entriesOf(one), number(one.entries))],
  ['Extensions', '', withOf],
  ...indexColumns(acts, context).slice(2),
];

function freezeButton(context, target, name, frozen) {
  const word = frozen ? 'Thaw' : 'Freeze';
  return button(word, () => dialog({
    title: `${word} ${name}?`,
    content: el('p', {}, frozen
      ? 'The server accepts writes again, and sources publish the changes that they held back.'
      : 'Nothing changes until you thaw it: the server rejects writes, and sources hold their changes back. Crawlers are still served.'),
    action: word,
    async run() {
      const now = (await patch(target, {json: {frozen: !frozen}})).frozen;
      context.done(now === frozen ? `${name} stays frozen, because its site is frozen.` : `${name} is ${frozen ? 'thawed' : 'frozen'}.`);
    },
  }), '', name);
}

const adder = (context, what, call, about, said) => button('Add ' + what, () => {
  const {input, node} = field(about);
  dialog({
    title: 'Add ' + what, content: node, action: 'Add',
    async run() {
      await post(call, {json: {[about.name]: input.value.trim()}});
      context.done(said);
    },
  });
});

const addSite = (context) => adder(context, 'a site', '/v1/sites',
  {label: 'Origin', name: 'origin', hint: 'Scheme and host that crawlers use. The site gets an index at /sitemap_index.xml.'},
  'Site added. Its web server must proxy /robots.txt and the index to this server.');

const addIndex = (context, site) => adder(context, 'an index', '/v1/indexes',
  {label: 'URL', name: 'url', value: site.origin + '/', hint: 'Ends in .xml. It lists the sitemaps registered in its directory and below.'}, 'Index added.');

/* What is wrong with a site, each with what to do: lists of text and links. */
function troubles(site, known) {
  const out = [];
  const add = (...text) => out.push(text);
  if (site.frozen) add('Frozen: the server rejects writes, and sources hold their changes back. Thaw it when you are done.');
  if (!site.frozen && known.lists.some((one) => one.frozen)) add('An index or urlset below is frozen: thaw it when you are done.');
  if (!known.partly && known.lists.every((one) => one.entries === 0)) add('No sitemaps yet: register some, or ', link('#/sources', 'add a source'), '.');
  for (const source of known.sources) {
    const sourceLink = () => link('#/sources', source.name);
    if (source.failure) add('Source ', sourceLink(), ' has been failing since ', time(source.failed_at), ': ', failureText(source));
    if (source.held_removals > 0) add('Source ', sourceLink(), ': the shrink guard holds ', count(source.held_removals, 'removal'), '. Confirm them there, or restore the files.');
    if (source.problems_total > 0) add('Source ', sourceLink(), ': ', count(source.problems_total, fileNoun(source) + ' is', fileNoun(source) + 's are'), ' rejected. ', link('#/problems', 'See why'), '.');
    if (badText(source).length > 0) add('Source ', sourceLink(), ': ', badText(source).map(([, one], i) => [i > 0 && ', ', one]), '. Follow the links to see what to do.');
  }
  if (known.checks.length > 0) {
    const [{state}] = known.checks;
    add(count(known.checks.length, 'registered sitemap'), known.more ? ' or more' : '', ' cannot be read, first ', link(to('checks', {site: site.origin, source: '', state}), known.checks[0].loc), ': ', CHECKS[state][1].toLowerCase(), '. ', remedyOf(known.checks[0]));
  }
  for (const one of known.engines) {
    const engineLink = () => link(to('engine/' + one.name, {site: site.origin}), NAMES[one.name] || one.name);
    if (/^(refused|forbidden|failed)$/.test(one.state)) add(engineLink(), ': ', STATES[one.state][1].toLowerCase(), one.reason ? ` (${one.reason})` : '', '. ', ENGINE_REMEDY[one.state]);
    if (one.errors + one.warnings > 0) add(engineLink(), ' found ', foundBy(one), '. See its own console for details.');
  }
  return out;
}

const ENGINE_REMEDY = {
  refused: 'Create a new key.', forbidden: 'Give the account access to this site in the engine\'s console.', failed: 'The server retries; check the network if this persists.',
};

const healthOf = (all) => (all.length === 0 ? el('p', {class: 'health'}, badge('good', 'No problem known'))
  : el('div', {class: 'health'}, badge('warn', 'Needs attention'), lines(all)));

/* The first bad sitemaps without a source; a call looks at a bounded part of those of the site. */
async function badChecks(site) {
  const found = [];
  let after = null;
  do {
    const {checks, next} = await get('/v1/checks', {site: site.origin, source: '', state: 'bad', limit: 100 - found.length, after});
    found.push(...checks);
    after = next;
  } while (after && found.length < 100);
  return {checks: found, next: after};
}

/* The data for the lines: sources of the site, its checks without a source, reports of engines. */
async function readSite(site, sources, engines, [indexes, urlsets]) {
  const [checks, said] = await Promise.all([
    site.check ? badChecks(site) : {checks: []},
    engines.length > 0 ? get('/v1/engines', {site: site.origin}) : {engines: []},
  ]);
  const bad = checks.checks.map(({loc, check}) => ({loc, ...check}));
  return {lists: [...indexes.indexes, ...urlsets.urlsets], partly: Boolean(indexes.next || urlsets.next), sources: sources.filter((one) => one.site === site.origin || one.site === null), checks: bad, more: Boolean(checks.next), engines: said.engines};
}

/* What is wrong with the site of a token for one site. */
export async function ownTroubles(sources, engines) {
  const [{sites: [site]}, ...lists] = await Promise.all(['sites', 'indexes', 'urlsets'].map((kind) => get('/v1/' + kind)));
  return site ? troubles(site, await readSite(site, sources, engines, lists)) : [];
}

function siteSection(context, site, indexes, urlsets, wrong) {
  return el('section', {},
    el('h2', {class: 'with-buttons'}, el('span', {class: 'url'}, site.origin), ' ', site.frozen ? badge('warn', 'Frozen') : null,
      el('span', {class: 'buttons'}, link(to('charts', {site: site.origin}), 'Charts'), context.may('admin') && [
        addIndex(context, site), freezeButton(context, '/v1/sites/' + site.id, site.origin, site.frozen)])),
    healthOf(wrong),
    facts([
      ['Host aliases', site.host_aliases.length > 0 ? site.host_aliases.join(', ') : null],
      ['Cross hosts', site.cross_hosts.length > 0 ? site.cross_hosts.join(', ') : null],
      ['Managed by', site.managed ? 'the configuration' : null],
    ]),
    table('Indexes of ' + site.origin, indexColumns(context.may('admin'), context), indexes, 'No indexes.'),
    urlsets.length > 0 && table('Urlsets of ' + site.origin, urlsetColumns(context.may('admin'), context), urlsets, '', true));
}

const SITES = 50;

export async function sites(context, where) {
  const list = await get('/v1/sites', {limit: SITES, after: where.query.get('after')});
  const all = (kind) => Promise.all(list.sites.map((site) => get('/v1/' + kind, {site: site.origin})));
  const [indexes, urlsets, {sources}, {engines}] = await Promise.all([all('indexes'), all('urlsets'), get('/v1/sources'), get('/v1/engines')]);
  const known = await Promise.all(list.sites.map((site, i) => readSite(site, sources, engines, [indexes[i], urlsets[i]])));
  const troubled = list.sites.map((site, i) => ({site, i, all: troubles(site, known[i])})).sort((a, b) => (b.all.length > 0) - (a.all.length > 0));
  const bad = troubled.filter(({all}) => all.length > 0).length;
  return {
    title: 'Sites',
    content: [
      context.may('admin') && !context.me.site && buttons(addSite(context)),
      bad > 0 && list.sites.length > 1 && el('p', {}, `${number(bad)} of ${count(list.sites.length, 'site')} ${bad === 1 ? 'needs' : 'need'} attention, listed first.`),
      list.sites.length === 0 && none('No sites yet: crawlers get 421.'),
      troubled.map(({site, i, all}) => [
        siteSection(context, site, indexes[i].indexes, urlsets[i].urlsets, all),
        (indexes[i].next || urlsets[i].next) && none('Only the first 100 are shown.'),
      ]),
      further(list.next, to('sites', {after: list.next}), 'More sites'),
    ],
  };
}

const HOLDERS = 8;

/* {page's URL: {has: [name], lacks: [name]}} of its crawlers. */
async function readHolders(one) {
  const known = (await get('/v1/crawlers')).crawlers.slice(0, HOLDERS);
  const answers = await Promise.all(known.map(({name}) => get(`/v1/crawlers/${encodeURIComponent(name)}/pages`, {[nounOf(one).list]: one.id, limit: 1000})));
  const of = new Map();
  answers.forEach((answer, i) => {
    for (const page of answer.pages) {
      if (!of.has(page.url)) of.set(page.url, {has: [], lacks: []});
      const held = of.get(page.url);
      (page.held_changed_at && !page.stale_since ? held.has : held.lacks).push(named(known[i].name));
    }
  });
  return of;
}

function holdersText(held) {
  if (!held) return soft('none');
  return [['up to date: ', held.has], ['stale: ', held.lacks]].filter(([, names]) => names[0]).map(([what, names]) => what + names.join(', ')).join('; ');
}

/* A text list becomes NDJSON here; NDJSON stays as it is. */
function asLines(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '')
    .map((line) => (line.startsWith('{') ? line : JSON.stringify({loc: line}))).join('\n') + '\n';
}

function replaceDialog(context, one, tag) {
  const {calls, list} = nounOf(one);
  const file = field({label: 'File', name: 'file', type: 'file', hint: `One URL on each line, or NDJSON with loc and lastmod. They replace all entries of this ${list} that your token registered.`});
  const preview = el('div', {role: 'status'});
  let ready = null, allowed = null;
  const send = (dry, max) => put(calls, {query: {[list]: one.url, dry_run: dry, max_removed: max}, body: ready, type: 'application/x-ndjson', match: tag});
  const show = (answer) => fill(preview, countsOf(answer));
  file.input.addEventListener('change', () => {
    ready = allowed = null;
    fill(preview);
  });
  dialog({
    title: `Replace ${path(one.url)}`, content: [el('p', {class: 'url'}, one.url), file.node, preview], action: 'Preview', danger: true,
    async run(self) {
      if (ready !== null) {
        const answer = await send(null, allowed ? allowed.read() : null);
        context.done('Done: ', countsText(answer));
        return true;
      }
      if (file.input.files.length === 0) throw Object.assign(new Error('is required'), {code: '', field: 'file'});
      ready = asLines(await file.input.files[0].text());
      try {
        show(await send('1', null));
      } catch (error) {
        if (error.code !== 'shrink-guard') {
          ready = null;
          throw error;
        }
        allowed = approval(error.body.would_remove, 'This list');
        show(await send('1', error.body.would_remove));
        preview.append(allowed.node);
        allowed.input.focus();
      }
      self.submit.textContent = 'Replace';
      return false;
    },
  });
}

export function countsText(answer) {
  return [[answer.created, 'new'], [answer.updated, 'changed'], [answer.removed, 'removed'], [answer.unchanged, 'unchanged'], [answer.spared, 'skipped (owned by another)']]
    .filter(([n]) => n > 0).map(([n, what]) => number(n) + ' ' + what).join(', ') || 'no changes';
}

/* The answer of a dry run: counts and the first rows. */
export function countsOf(answer) {
  const kind = (row) => (row.before === null ? 'new' : row.after === null ? 'removed' : 'changed');
  const rows = (answer.rows || []).slice(0, 10);
  return [
    el('p', {}, 'Result: ', countsText(answer), '.'),
    lines(rows.map((row) => [badge('', kind(row)), ' ', el('span', {class: 'url'}, row.loc)]), 'rows'),
    answer.rows_total > rows.length && none(`and ${number(answer.rows_total - rows.length)} more`),
  ];
}

export async function index(context, where) {
  const {value: one, etag} = await getTagged(`/v1/${where.view === 'urlset' ? 'urlsets' : 'indexes'}/` + encodeURIComponent(where.id));
  const paged = isUrlset(one), many = paged ? 'Page URLs' : 'Sitemaps';
  const holders = await readHolders(one);
  return {
    title: (paged ? 'Urlset ' : 'Index ') + path(one.url),
    content: [
      el('p', {}, outside(one.url)),
      facts([
        ['Site', one.site],
        ['Listed in', paged && link(to('entries', {index: one.index}), one.index)],
        [many, link(entriesOf(one), number(one.entries))],
        ['Extensions', paged && withOf(one)],
        ['Size', bytes(one.bytes)],
        ['Changed', time(one.changed_at)],
        ['State', stateOf(one)],
      ]),
      buttons(
        link(entriesOf(one), many),
        context.hasHistory() && link(to('history', {index: one.url}), 'History'),
        context.may('write') && button('Replace from a file', () => replaceDialog(context, one, etag)),
        context.may('write') && context.hasHistory() && button('Restore', () => restoreDialog(context, one.url, null)),
        context.may('admin') && freezeButton(context, pathOf(one), one.url, one.frozen)),
      section('Pages', table(count(one.pages.length, 'page'), [
        ['Page', 'url', (page) => outside(page.url)],
        [many, 'number', (page) => number(page.entries)],
        ['Size', 'number', (page) => bytes(page.bytes)],
        ['Changed', '', (page) => ago(page.changed_at)],
        ['Crawlers', '', (page) => holdersText(holders.get(page.url))],
      ], one.pages, 'Empty: crawlers get a page without entries.', true)),
    ],
  };
}
