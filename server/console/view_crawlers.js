/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Crawlers: how far each is up to date, in words; one crawler with its pages and days. */
import {get} from './api.js';
import {enginesTable} from './view_engines.js';
import {delayOf, eachDay} from './view_stats.js';
import {ago, badge, buttons, chart, count, el, facts, further, link, none, number, section, soft, span, table, time, to} from './dom.js';

/* The crawler's own spelling: Googlebot, Bingbot, YandexBot, GPTBot. */
export const named = (name) => name.replace(/^(cc|gpt|oai)|^./, (begin) => begin.toUpperCase())
  .replace(/(?<!Google|Bing|Apple|Amazon)bot$/, 'Bot');

function stateOf(one) {
  if (one.stale > 0) return badge('warn', 'Stale');
  if (one.pages === 0) return badge('', 'No pages yet');
  return one.never > 0 ? badge('', 'Some pages') : badge('good', 'Up to date');
}

const crawlerLink = (one) => link('#/crawler/' + encodeURIComponent(one.name), named(one.name));

export const COVERS = 'Only pages of indexes and urlsets are counted here. The view of a sitemap shows which crawlers fetched it.';

/* "Googlebot has the newest version of the 3 pages it fetches, as of 12:04." */
export function crawlerSentence(one, linked = true) {
  return [
    stateOf(one), ' ', linked ? crawlerLink(one) : named(one.name),
    one.seen_up_to ? [` has the newest version of ${one.pages === 1 ? 'the page' : `the ${number(one.pages)} pages`} it fetches, as of `, time(one.seen_up_to)] : ' has not fetched a complete page since counting began',
    one.stale > 0 ? ['; ', count(one.stale, 'page has', 'pages have'), ' changed since, the first ', ago(one.stale_since)] : null,
    one.never > 0 ? ['; it has never fetched ', count(one.never, one.pages > 0 ? 'other page' : 'page')] : null,
    '.',
  ];
}

const verified = (one) => (one.verified ? 'by its address ranges' : 'no: every client that uses its name counts');

function lagFacts(one) {
  return one.lag.changes === 0 ? null
    : one.lag.changes === 1 ? `one change, seen within ${span(one.lag.max_s)}`
    : `of ${number(one.lag.changes)} changes 50 % seen within ${span(one.lag.p50_s)}, 90 % within ${span(one.lag.p90_s)}, all within ${span(one.lag.max_s)}`;
}

const SERIES = [
  {name: 'downloaded (200)', kind: 'first', of: (day) => day.ok},
  {name: 'not modified (304)', kind: 'second', of: (day) => day.not_modified},
];

function daysTable(one) {
  return table('Each day (UTC)', [
    ['Day', '', (day) => day.day],
    ['Downloaded (200)', 'number', (day) => number(day.ok)],
    ['Not modified (304)', 'number', (day) => number(day.not_modified)],
    ['Other', 'number', (day) => number(day.other)],
    ['Impostors', 'number', (day) => number(day.impostors)],
  ], one.days.slice().reverse());
}

/* Days before `since` are of imported logs (sitemapd crawlers import). */
function note(answer) {
  if (!answer.since) return none('Visits are not counted (crawlers = no in the configuration).');
  const first = answer.crawlers.map((one) => one.days[0]?.day).filter(Boolean).sort()[0];
  const imported = first && first < answer.since.slice(0, 10) && [' Earlier days, from ', first, ' on, were imported from logs.'];
  return none(COVERS, ' Counting began ', time(answer.since), '. Requests that a cache answers are not counted.', imported);
}

export async function crawlers() {
  const [answer, {engines}] = await Promise.all([get('/v1/crawlers'), get('/v1/engines')]);
  return {
    title: 'Crawlers',
    content: [
      enginesTable(engines),
      engines.length > 0 && el('h2', {}, 'What this server saw'),
      note(answer),
      table('Crawlers', [
        ['Crawler', '', crawlerLink],
        ['State', '', stateOf],
        ['Up to date as of', '', (one) => time(one.seen_up_to, 'no complete page yet')],
        ['Last visit', '', (one) => ago(one.last_fetch_at)],
        ['Pages up to date', 'number', (one) => number(one.current)],
        ['Stale', 'number', (one) => number(one.stale)],
        ['Never fetched', 'number', (one) => number(one.never)],
        ['Median delay', '', (one) => (one.lag.changes > 0 ? span(one.lag.p50_s) : soft('unknown'))],
      ], answer.crawlers, answer.since && 'No visits yet.'),
    ],
  };
}

const PAGES = 100;

export async function crawler(context, where) {
  const stale = where.query.get('stale') === '1', after = where.query.get('after');
  const answer = await get('/v1/crawlers');
  const one = answer.crawlers.find((known) => known.name === where.id);
  if (!one) return {title: named(where.id), content: none('No visits from this crawler.')};
  const [list, stats] = await Promise.all([get(`/v1/crawlers/${encodeURIComponent(one.name)}/pages`, {stale: stale ? '1' : null, after, limit: PAGES}), get('/v1/stats')]);
  const here = (query) => to('crawler/' + encodeURIComponent(one.name), query);
  const days = eachDay(one.days, stats.to, () => ({ok: 0, not_modified: 0, other: 0, impostors: 0}));
  return {
    title: named(one.name),
    content: [
      el('p', {}, crawlerSentence(one, false)),
      facts([
        ['Last visit', time(one.last_fetch_at)],
        ['Verified', verified(one)],
        ['Pages', `${number(one.current)} up to date, ${number(one.stale)} stale, ${number(one.never)} never fetched`],
        ['Delay from change to visit', lagFacts(one)],
      ]),
      section('Pages',
        buttons(
          [[{}, 'All pages'], [{stale: '1'}, 'Only stale pages']].map(([query, text]) => el('a', {href: here(query), 'aria-current': stale === 'stale' in query && 'true'}, text))),
        table('Pages and the versions it has', [
          ['Page', 'url', (page) => page.url],
          ['State', '', (page) => (page.fetched_at === null ? badge('', 'Never fetched') : page.stale_since ? badge('warn', 'Stale') : page.held_changed_at ? badge('good', 'Up to date') : badge('warn', 'Incomplete'))],
          ['Fetched', '', (page) => ago(page.fetched_at)],
          ['Status', 'number', (page) => (page.status === null ? '' : String(page.status))],
          ['Has the version of', '', (page) => time(page.held_changed_at, 'none')],
          ['Page changed', '', (page) => time(page.changed_at)],
        ], list.pages, stale ? 'None: all pages it fetches are up to date.' : 'No pages.'),
        further(list.next, here({...(stale ? {stale: '1'} : {}), after: list.next}), 'More pages')),
      section('Visits by day', days.length > 0
        ? [days.length > 1 && chart(`Fetches by ${named(one.name)} on each of ${days.length} days; the table has the numbers`, days, SERIES, (most) => `at most ${number(most)} a day; today is incomplete`),
          el('details', {open: days.length < 8}, el('summary', {}, 'Numbers'), daysTable(one))]
        : none('No visits yet.')),
      delayOf(stats, one.name),
      note(answer),
    ],
  };
}
