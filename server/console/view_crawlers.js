/* Crawlers: up to when each has seen all changes, in words; one of them with its pages and its days. */
import {get} from './api.js';
import {ago, badge, buttons, chart, count, el, facts, further, link, none, number, section, soft, span, table, time, to} from './dom.js';

/* As it calls itself: Googlebot, Bingbot, YandexBot, GPTBot. */
export const named = (name) => name.replace(/^(cc|gpt|oai)|^./, (begin) => begin.toUpperCase())
  .replace(/(?<!Google|Bing|Apple|Amazon)bot$/, 'Bot');

function stateOf(one) {
  if (one.stale > 0) return badge('warn', 'Behind');
  if (one.pages === 0) return badge('', 'No page yet');
  return one.never > 0 ? badge('', 'Not all pages') : badge('good', 'Up to date');
}

const crawlerLink = (one) => link('#/crawler/' + encodeURIComponent(one.name), named(one.name));

export const COVERS = 'Pages of indexes and urlsets count; other sitemaps are not observed.';

/* "Googlebot has seen all index pages up to 12:04." */
export function crawlerSentence(one, linked = true) {
  return [
    stateOf(one), ' ', linked ? crawlerLink(one) : named(one.name),
    one.seen_up_to ? [one.never > 0 ? ` has seen ${one.pages === 1 ? 'the page' : `the ${number(one.pages)} pages`} that it fetches up to ` : ' has seen all index pages up to ', time(one.seen_up_to)] : ' has seen no page whole',
    one.stale > 0 ? ['; ', count(one.stale, 'page has', 'pages have'), ' changed since, the first ', ago(one.stale_since)] : null,
    one.never > 0 ? ['; ', count(one.never, 'other'), ' it has never fetched'] : null,
    '.',
  ];
}

const verified = (one) => (one.verified ? 'by its address ranges' : 'no: whoever says its name counts');

function lagFacts(one) {
  return one.lag.changes === 0 ? null
    : one.lag.changes === 1 ? `one change, within ${span(one.lag.max_s)}`
    : `half of ${number(one.lag.changes)} changes within ${span(one.lag.p50_s)}, nine in ten within ${span(one.lag.p90_s)}, all within ${span(one.lag.max_s)}`;
}

const SERIES = [
  {name: 'fetched anew (200)', kind: 'first', of: (day) => day.ok},
  {name: 'unchanged (304)', kind: 'second', of: (day) => day.not_modified},
];

/* All days from the first that is known, quiet ones too. */
function filled(days) {
  if (days.length === 0) return [];
  const of = new Map(days.map((day) => [day.day, day]));
  const out = [];
  const end = new Date().toISOString().slice(0, 10);
  for (let at = new Date(days[0].day); out.length < 90; at = new Date(at.getTime() + 86400000)) {
    const day = at.toISOString().slice(0, 10);
    if (day > end) break;
    out.push(of.get(day) || {day, ok: 0, not_modified: 0, other: 0, impostors: 0});
  }
  return out;
}

function daysTable(one) {
  return table('Each day (UTC)', [
    ['Day', '', (day) => day.day],
    ['Fetched anew (200)', 'number', (day) => number(day.ok)],
    ['Unchanged (304)', 'number', (day) => number(day.not_modified)],
    ['Others', 'number', (day) => number(day.other)],
    ['Impostors', 'number', (day) => number(day.impostors)],
  ], one.days.slice().reverse());
}

function note(answer) {
  return none(answer.since
    ? [COVERS, ' Counted since ', time(answer.since), ', as the origin saw it: answers of a cache in front do not count.']
    : 'Visits are not counted: the configuration says crawlers = no.');
}

export async function crawlers() {
  const answer = await get('/v1/crawlers');
  return {
    title: 'Crawlers',
    content: [
      note(answer),
      table('Crawlers that came', [
        ['Crawler', '', crawlerLink],
        ['State', '', stateOf],
        ['Has seen them up to', '', (one) => time(one.seen_up_to, 'nothing whole yet')],
        ['Came last', '', (one) => ago(one.last_fetch_at)],
        ['Pages up to date', 'number', (one) => number(one.current)],
        ['Behind', 'number', (one) => number(one.stale)],
        ['Never fetched', 'number', (one) => number(one.never)],
        ['Usual delay', '', (one) => (one.lag.changes > 0 ? span(one.lag.p50_s) : soft('unknown'))],
      ], answer.crawlers, answer.since && 'None has come yet.'),
    ],
  };
}

const PAGES = 100;

export async function crawler(context, where) {
  const stale = where.query.get('stale') === '1', after = where.query.get('after');
  const answer = await get('/v1/crawlers');
  const one = answer.crawlers.find((known) => known.name === where.id);
  if (!one) return {title: named(where.id), content: none('It has not come here.')};
  const list = await get(`/v1/crawlers/${encodeURIComponent(one.name)}/pages`, {stale: stale ? '1' : null, after, limit: PAGES});
  const here = (query) => to('crawler/' + encodeURIComponent(one.name), query);
  const days = filled(one.days);
  return {
    title: named(one.name),
    content: [
      el('p', {}, crawlerSentence(one, false)),
      facts([
        ['Came last', time(one.last_fetch_at)],
        ['Verified', verified(one)],
        ['Pages', `${number(one.current)} up to date, ${number(one.stale)} behind, ${number(one.never)} never fetched`],
        ['From a change to its visit', lagFacts(one)],
      ]),
      section('Its pages',
        buttons(
          [[{}, 'All pages'], [{stale: '1'}, 'Only those behind']].map(([query, text]) => el('a', {href: here(query), 'aria-current': stale === 'stale' in query && 'true'}, text))),
        table('Pages as it has them', [
          ['Page', 'url', (page) => page.url],
          ['State', '', (page) => (page.fetched_at === null ? badge('', 'Never fetched') : page.stale_since ? badge('warn', 'Behind') : page.held_changed_at ? badge('good', 'Up to date') : badge('warn', 'Not whole'))],
          ['Fetched', '', (page) => ago(page.fetched_at)],
          ['Answered', 'number', (page) => (page.status === null ? '' : String(page.status))],
          ['It has the version of', '', (page) => time(page.held_changed_at, 'none')],
          ['The page changed', '', (page) => time(page.changed_at)],
        ], list.pages, stale ? 'None: it has all that it fetches as they are now.' : 'None.'),
        further(list.next, here({...(stale ? {stale: '1'} : {}), after: list.next}), 'More pages')),
      section('Its days', days.length > 0
        ? [days.length > 1 && chart(`Fetches of ${named(one.name)} on each of ${days.length} days; the table has the numbers`, days, SERIES),
          el('details', {open: days.length < 8}, el('summary', {}, 'The numbers'), daysTable(one))]
        : none('There is none yet.')),
      note(answer),
    ],
  };
}
