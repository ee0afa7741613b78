/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Charts of the last 90 days: sizes, fetches and delays by crawler, what search engines found; each with its numbers. */
import {get} from './api.js';
import {chart, el, field, link, none, number, searchForm, section, soft, span, table, to} from './dom.js';
import {named} from './view_crawlers.js';
import {NAMES} from './view_engines.js';

const MS = 86400000;
const KINDS = ['first', 'second', 'third', 'fourth', 'fifth'];

/* A value for each day from the first known one to the last of the range; `blank(before)` where nothing is known. */
export function eachDay(known, last, blank) {
  const of = new Map(known.map((one) => [one.day, one]));
  const out = [];
  for (let at = known.length > 0 ? Date.parse(known[0].day) : Infinity; at <= Date.parse(last); at += MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    out.push(of.get(day) || {...blank(out.at(-1)), day});
  }
  return out;
}

function drawn(title, days, series, cell = number, most) {
  return section(title,
    chart(`${title}, on ${days.length} days; the table has the numbers`, days, series, most),
    el('details', {}, el('summary', {}, 'Numbers'), table(title + ', each day (UTC)', [
      ['Day', '', (day) => day.day],
      ...series.map((one) => [one.name, 'number', (day) => cell(one.of(day))]),
    ], days.slice().reverse())));
}

/* Nothing before the second day. */
const some = (days) => days.length > 1;

function sizes({days, to: last}) {
  const all = eachDay(days, last, (before) => before);
  const one = (title, name) => some(all) && all.some((day) => day[name] > 0) && drawn(title, all, [{name: title, kind: 'first', of: (day) => day[name]}]);
  return [one('Sitemaps', 'entries'), one('Page URLs', 'urls')];
}

const seen = (day) => day.ok + day.not_modified;

/* The crawlers with most fetches have a line each: {day: {crawler: its day}} as days. */
function byCrawler(stats, value) {
  const sum = (one) => one.days.reduce((total, day) => total + seen(day), 0);
  const most = stats.crawlers.filter((one) => one.days.some((day) => value(day) !== null)).sort((a, b) => sum(b) - sum(a)).slice(0, KINDS.length);
  const days = new Map();
  for (const one of most)
    for (const day of one.days) days.set(day.day, {...days.get(day.day), day: day.day, [one.name]: day});
  return {
    days: eachDay([...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1)), stats.to, () => ({})),
    series: most.map((one, i) => ({name: named(one.name), kind: KINDS[i], of: (day) => (day[one.name] ? value(day[one.name]) : null)})),
  };
}

function fetches(stats) {
  const {days, series} = byCrawler(stats, seen);
  return some(days) && drawn('Fetches by crawler', days, series.map((one) => ({...one, of: (day) => one.of(day) || 0})), number, (n) => `at most ${number(n)} a day; today is incomplete`);
}

const delayText = (s) => (s === null ? '' : span(s));
const most = (s) => `at most ${span(s)}`;

function delays(stats) {
  const {days, series} = byCrawler(stats, (day) => day.lag && day.lag.p50_s);
  return some(days) && drawn('Median delay from change to visit', days, series, delayText, most);
}

/* Of one crawler: half of the changes, and nine in ten, were fetched within this time. */
export function delayOf(stats, name) {
  const one = stats.crawlers.find((known) => known.name === name);
  const days = one ? one.days.filter((day) => day.lag) : [];
  const all = eachDay(days, stats.to, () => ({lag: null}));
  const line = (text, kind, of) => ({name: text, kind, of: (day) => day.lag && day.lag[of]});
  return some(all) && drawn('Delay from change to visit', all, [line('50 % within', 'first', 'p50_s'), line('90 % within', 'second', 'p90_s')], delayText, most);
}

function found(stats) {
  return stats.engines.map((one) => {
    const days = eachDay(one.days, stats.to, (before) => before);
    const line = (name, kind) => ({name, kind, of: (day) => day[name]});
    return some(days) && drawn(`Found by ${NAMES[one.name] || one.name}`, days, [line('errors', 'first'), line('warnings', 'second')]);
  });
}

/* For the overview. */
export async function summary() {
  const stats = await get('/v1/stats');
  const all = [sizes(stats), fetches(stats)].flat().filter(Boolean);
  return all.length > 0 && [el('div', {class: 'charts'}, all), el('p', {}, link('#/charts', 'All charts'))];
}

export async function charts(context, where) {
  const [{sites}, stats] = await Promise.all([get('/v1/sites', {limit: 1000}), get('/v1/stats', {site: where.query.get('site')})]);
  const site = field({label: 'Site', name: 'site', value: stats.site, options: [...(context.me.site ? [] : [['', 'All sites']]), ...[...new Set([stats.site, ...sites.map((one) => one.origin)])].filter(Boolean).map((one) => [one, one])]});
  const all = [sizes(stats), fetches(stats), delays(stats), found(stats)].flat(2).filter(Boolean);
  return {
    title: 'Charts',
    content: [
      sites.length > 1 && searchForm([site], () => context.go(to('charts', site.input.value ? {site: site.input.value} : {})), 'Show'),
      all.length > 0 ? el('div', {class: 'charts'}, all) : none('Charts begin on the second day; the sums of 90 days are kept.'),
      none('Days are UTC. ', soft('Fetches are those that reached this server.')),
    ],
  };
}
