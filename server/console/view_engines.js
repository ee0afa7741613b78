/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reports of search engines about the sitemaps: a line for each engine; one engine with its sites, sitemaps and days. */
import {get} from './api.js';
import {ago, badge, chart, count, el, further, link, none, number, outside, section, soft, table, time, to} from './dom.js';

export const NAMES = {google: 'Google', bing: 'Bing'};
const CRAWLER = {google: 'googlebot', bing: 'bingbot'};
export const STATES = {
  ok: ['good', 'Answers'], waiting: ['', 'Not queried yet'], refused: ['warn', 'Key rejected'],
  forbidden: ['warn', 'No access'], busy: ['', 'Rate limited'], failed: ['warn', 'No answer'],
};

const stateOf = (one) => badge(...(STATES[one.state] || ['', one.state]));
const found = (one) => (one.errors > 0 ? badge('warn', count(one.errors, 'error'))
  : one.warnings > 0 ? badge('', count(one.warnings, 'warning')) : badge('good', 'No errors'));

/* "3 errors and 1 warning" */
export const foundBy = (one) => [one.errors > 0 && count(one.errors, 'error'), one.warnings > 0 && count(one.warnings, 'warning')].filter(Boolean).join(' and ');

/* Problems that engines report, besides those that the server knows. */
export const engineLines = (engines) => engines.filter((one) => one.errors > 0 || /^(forbidden|failed)$/.test(one.state)).map((one) => [
  NAMES[one.name] || one.name, one.errors > 0 ? ` found ${foundBy(one)} in the sitemaps. ` : `: ${STATES[one.state][1].toLowerCase()}${one.reason ? ` (${one.reason})` : ''}. `,
  link('#/engine/' + one.name, 'Show details')]);

/* Empty if no engine is configured. */
export function enginesTable(engines) {
  return engines.length > 0 && section('What search engines report',
    table('Search engines', [
      ['Engine', '', (one) => link('#/engine/' + one.name, NAMES[one.name] || one.name)],
      ['State', '', stateOf],
      ['Found', '', (one) => (one.sitemaps > 0 ? found(one) : soft('nothing listed'))],
      ['Sitemaps listed', 'number', (one) => number(one.sitemaps)],
      ['Oldest read', '', (one) => ago(one.read_at)],
      ['Queried', '', (one) => ago(one.asked_at)],
    ], engines));
}

function sitemapState(one) {
  if (!one.listed) return badge('', 'Submitted');
  return one.pending ? badge('', 'Not processed yet') : found(one);
}

const SERIES = [{name: 'errors', kind: 'first', of: (day) => day.errors}, {name: 'warnings', kind: 'second', of: (day) => day.warnings}];

function daysOf(site, name) {
  return site.days.length > 1 && site.days.some((day) => day.errors + day.warnings > 0) && [
    chart(`Errors and warnings of ${name} for ${site.site} on ${site.days.length} days; the table has the numbers`, site.days, SERIES),
    el('details', {}, el('summary', {}, 'Numbers'), table('Each day (UTC)', [
      ['Day', '', (day) => day.day],
      ['Errors', 'number', (day) => number(day.errors)],
      ['Warnings', 'number', (day) => number(day.warnings)],
      ['Sitemaps', 'number', (day) => number(day.sitemaps)],
      ['Page URLs', 'number', (day) => number(day.urls)],
    ], site.days.slice().reverse())),
  ];
}

function siteSection(site, name) {
  return section(site.site,
    el('p', {}, stateOf(site), ' ', site.reason ? site.reason + '.' : ['queried ', ago(site.asked_at), ', next query ', ago(site.next_at), '.']),
    table('Sitemaps', [
      ['Sitemap', 'url', (one) => [one.index && soft('in the index: '), outside(one.loc)]],
      ['State', '', sitemapState],
      ['Errors', 'number', (one) => number(one.errors)],
      ['Warnings', 'number', (one) => number(one.warnings)],
      ['Page URLs', 'number', (one) => number(one.urls)],
      ['Submitted', '', (one) => time(one.submitted_at || one.sent_at)],
      ['Read', '', (one) => ago(one.read_at)],
    ], site.sitemaps, site.asked_at ? 'The engine lists no sitemaps.' : 'The server queries it once an index has entries.'),
    daysOf(site, name));
}

const worst = (site) => site.sitemaps.reduce((most, one) => Math.max(most, one.errors * 1000 + one.warnings), /^(ok|waiting|busy)$/.test(site.state) ? 0 : Number.MAX_VALUE);

export async function engine(context, where) {
  const name = NAMES[where.id] || where.id;
  const [answer, seen] = await Promise.all([
    get(`/v1/engines/${encodeURIComponent(where.id)}/sitemaps`, {site: where.query.get('site'), after: where.query.get('after')}), get('/v1/crawlers'),
  ]);
  const crawler = seen.crawlers.find((one) => one.name === CRAWLER[where.id]);
  return {
    title: 'What ' + name + ' reports',
    content: [
      el('p', {}, crawler
        ? ['This server saw its crawler ', ago(crawler.last_fetch_at), ': ', link('#/crawler/' + crawler.name, 'which pages it has'), '.']
        : soft('This server has not seen its crawler yet.')),
      answer.sites.sort((a, b) => worst(b) - worst(a)).map((site) => siteSection(site, name)),
      answer.sites.length === 0 && none('No sites yet.'),
      further(answer.next, to('engine/' + encodeURIComponent(where.id), {after: answer.next}), 'More sites'),
    ],
  };
}
