/* Overview: is all well, how much there is, who has seen it, what was done last. */
import {get} from './api.js';
import {ago, badge, codeOf, count, el, lines, link, none, number, section, table, time, to} from './dom.js';
import {crawlerSentence} from './view_crawlers.js';
import {changeLine} from './view_history.js';
import {indexColumns} from './view_sites.js';
import {badText, sourceBadge} from './view_sources.js';

const INDEXES = 20, CHANGES = 5;

/* Where to do what about a reason of /readyz. */
const ADVICE = {
  'no-site': ['sites', 'To the sites'],
  'source-failing': ['sources', 'To the source'],
  'source-held': ['sources', 'To the source'],
  'source-problems': ['problems', 'Which and why'],
  'source-checks': ['checks', 'Which and why'],
  frozen: ['sites', 'To the sites'],
};

function adviceOf({code, detail}) {
  const [view, text] = ADVICE[code] || [];
  return view && link(view === 'checks' ? to(view, {source: detail.split(':')[0]}) : '#/' + view, text);
}

export function healthBox(health) {
  if (health.status === 'ok') return el('p', {class: 'health'}, badge('good', 'All is well'), ' Crawlers are served, and nothing waits for you.');
  return el('div', {class: 'health'},
    el('p', {}, health.status === 'degraded' ? badge('warn', 'Needs a look') : badge('bad', 'Nothing can be served'),
      ' This waits for somebody:'),
    el('ul', {}, health.reasons.map((reason) =>
      el('li', {}, reason.detail.replace(/(; GET|: make one with) .*/, '').replace(/^(\S+:) answers/, '$1 its list answers'), '. ', adviceOf(reason), ' ', codeOf(reason.code)))));
}

function tile(value, name, hash) {
  return el('a', {class: 'tile', href: hash}, el('strong', {}, value), ' ', el('span', {}, name));
}

function sourceLine(source) {
  return [sourceBadge(source), ' ', link('#/sources', source.name), ': ', count(source.listed, 'sitemap listed', 'sitemaps listed'),
    source.problems_total > 0 ? ', ' + count(source.problems_total, 'refused', 'refused') : '',
    badText(source),
    source.held_removals > 0 ? ', ' + count(source.held_removals, 'removal held', 'removals held') : '',
    '; last good scan ', ago(source.last_good_scan_at), '.'];
}

export async function overview(context) {
  const [health, sites, list, sources, crawlers, history] = await Promise.all([
    get('/readyz'), get('/v1/sites', {limit: 1000}), get('/v1/indexes'), get('/v1/sources'), get('/v1/crawlers'),
    context.hasHistory() ? get('/v1/history', {limit: CHANGES}) : {changes: []},
  ]);
  const indexes = list.indexes;
  const more = list.next ? ' or more' : '';
  const entries = indexes.some((one) => one.entries === null) ? null : indexes.reduce((sum, one) => sum + one.entries, 0);
  const pages = indexes.reduce((sum, one) => sum + one.pages.length, 0);
  const newest = indexes.map((one) => one.changed_at).filter(Boolean).sort().pop();
  const content = [
    healthBox(health),
    el('div', {class: 'tiles'},
      tile(number(entries) + more, entries === 1 ? 'sitemap' : 'sitemaps', '#/entries'),
      tile(number(pages) + more, pages === 1 ? 'index page' : 'index pages', '#/sites'),
      tile(number(sites.sites.length) + (sites.next ? ' or more' : ''), sites.sites.length === 1 ? 'site' : 'sites', '#/sites')),
    el('p', {}, 'Last change of an index: ', time(newest), '.'),
    section('Crawlers', crawlers.crawlers.length > 0
      ? lines(crawlers.crawlers.map((one) => crawlerSentence(one)))
      : none(crawlers.since ? ['None has come since ', time(crawlers.since), '.'] : 'Visits are not counted: crawlers = no.')),
    sources.sources.length > 0 && section('Sources', lines(sources.sources.map(sourceLine))),
    section('Indexes', indexes.length > 0
      ? [table('Indexes of all sites', indexColumns(false), indexes.slice(0, INDEXES), true),
        (indexes.length > INDEXES || list.next) && el('p', {}, link('#/sites', 'All sites and indexes'))]
      : none('There is no index yet. ', link('#/sites', 'Sites'))),
    context.hasHistory() && section('Latest changes', history.changes.length > 0
      ? [lines(history.changes.map(changeLine)), el('p', {}, link('#/history', 'All changes'))]
      : none('None is kept.')),
  ];
  return {title: 'Overview', content, live: true};
}
