/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Overview: health, totals, crawlers, sources, indexes and the latest changes. */
import {get} from './api.js';
import {ago, badge, codeOf, count, el, further, lines, link, none, number, section, table, time, to} from './dom.js';
import {COVERS, crawlerSentence} from './view_crawlers.js';
import {engineLines, enginesTable} from './view_engines.js';
import {changeLine} from './view_history.js';
import {indexColumns, ownTroubles} from './view_sites.js';
import {badText, sourceBadge} from './view_sources.js';
import {summary} from './view_stats.js';

const INDEXES = 20, CHANGES = 5;

const SITES = ['sites', 'Go to Sites'], SOURCE = ['sources', 'Go to Sources'];
/* Where to fix a reason of /readyz. */
const ADVICE = {
  'no-site': SITES,
  'source-failing': SOURCE,
  'source-held': SOURCE,
  'source-orphaned': SOURCE,
  'source-problems': ['problems', 'Show details'],
  frozen: SITES,
};

function adviceOf({code, detail}) {
  const checks = detail.match(/checks\?source=[^&]*/);
  const [view, text] = checks ? [checks[0], 'Show details'] : ADVICE[code] || [];
  return view && link('#/' + view, text);
}

/* `more`: lines about problems that /readyz does not report. */
function healthBox(health, more = []) {
  if (health.status === 'ok' && more.length === 0) return el('p', {class: 'health'}, badge('good', 'All is well'), ' The index pages are served, and no checked sitemap has a problem.');
  return el('div', {class: 'health'},
    el('p', {}, /^(ok|degraded)$/.test(health.status) ? badge('warn', 'Needs attention') : badge('bad', 'Nothing can be served')),
    el('ul', {}, more.map((one) => el('li', {}, one)), (health.reasons || []).map((reason) =>
      el('li', {}, reason.detail.replace(/(; GET|: create one with) .*/, '').replace(/^(\S+:) answers/, '$1 its index answers'), '. ', adviceOf(reason), ' ', codeOf(reason.code)))));
}

/* Reasons about single sites, and about what only the operator configures. */
const OF_SITES = /^(source-|registered-checks$|frozen$|alias-|engine-|indexnow-|config-)/;

/* /readyz names the problems of all sites. With a token for one site, the box has those of its site, and one line
 * without names about the server. */
export async function health(context, sources, engines) {
  const answer = await get('/readyz');
  if (!context.me.site) return healthBox(answer, engineLines(engines));
  const own = await ownTroubles(sources, engines);
  const codes = answer.reasons.map(({code}) => code).filter((code) => !OF_SITES.test(code));
  if (codes.length > 0) own.push(['The server itself has a problem; its operator can see the details. ', codes.map((code) => [codeOf(code), ' '])]);
  return healthBox({status: answer.status === 'unavailable' ? answer.status : own.length > 0 ? 'degraded' : 'ok'}, own);
}

const tile = (n, more, name, hash) => el('a', {class: 'tile', href: hash}, el('strong', {}, number(n), more && ' or more'), ' ', el('span', {}, n === 1 ? name : name + 's'));

function sourceLine(source) {
  return [sourceBadge(source), ' ', link('#/sources', source.name), ': ', count(source.listed, 'sitemap') + ' listed',
    source.problems_total > 0 ? ', ' + number(source.problems_total) + ' rejected' : '',
    badText(source),
    source.held_removals > 0 ? ', ' + count(source.held_removals, 'removal') + ' held' : '',
    '; last good scan ', ago(source.last_good_scan_at), '.'];
}

export async function overview(context) {
  const [sites, list, sources, crawlers, {engines}, charts, history] = await Promise.all([
    get('/v1/sites', {limit: 1000}), get('/v1/indexes'), get('/v1/sources'), get('/v1/crawlers'), get('/v1/engines'), summary(),
    context.hasHistory() ? get('/v1/history', {limit: CHANGES}) : {changes: []},
  ]);
  const indexes = list.indexes;
  const entries = indexes.some((one) => one.entries === null) ? null : indexes.reduce((sum, one) => sum + one.entries, 0);
  const pages = indexes.reduce((sum, one) => sum + one.pages.length, 0);
  const content = [
    await health(context, sources.sources, engines),
    el('div', {class: 'tiles'},
      tile(entries, list.next, 'sitemap', '#/entries'),
      tile(pages, list.next, 'index page', '#/sites'),
      tile(sites.sites.length, sites.next, 'site', '#/sites')),
    enginesTable(engines),
    section('Crawlers', crawlers.crawlers.length > 0
      ? [lines(crawlers.crawlers.map((one) => crawlerSentence(one))), none(COVERS)]
      : none(crawlers.since ? ['No visits since ', time(crawlers.since), '.'] : 'Visits are not counted (crawlers = no in the configuration).')),
    sources.sources.length > 0 && section('Sources', lines(sources.sources.map(sourceLine))),
    charts,
    section('Indexes', table('Indexes of all sites', indexColumns(false), indexes.slice(0, INDEXES), 'No indexes yet.'),
      further(indexes.length > INDEXES || list.next, '#/sites', 'All sites and indexes')),
    context.hasHistory() && section('Latest changes', history.changes.length > 0
      ? [lines(history.changes.map(changeLine)), el('p', {}, link('#/history', 'All changes'))]
      : none('No changes are kept.')),
  ];
  return {title: 'Overview', content, live: true};
}
