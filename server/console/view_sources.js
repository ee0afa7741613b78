/* Sources: how each folder or list stands, a scan now, removals that the guard holds. Problems: all
 * that waits for somebody, in one place. */
import {get, post} from './api.js';
import {ago, approval, badge, button, buttons, codeOf, count, dialog, el, facts, further, lines, link, none, number, section, table, time, to} from './dom.js';
import {CHECKS, checkBadge, remedyOf} from './view_entries.js';
import {healthBox} from './view_overview.js';
import {countsText} from './view_sites.js';

const place = (found) => (found.line > 0 ? `${number(found.line)}, column ${number(found.column)}` : 'the file itself');

const columnsOf = (what) => [
  ['File', 'url', (found) => found.path],
  [what, '', (found) => [found.detail, ' ', codeOf(found.code)]],
  ['Line', 'place', place],
];
const problemColumns = [
  ...columnsOf('What is wrong'),
  ['Since', '', (found) => time(found.since)],
  ['In the index', '', (found) => (found.listed ? 'its last good content' : 'not yet')],
];
const remarkColumns = [
  ...columnsOf('What crawlers may mind'),
  ['Times', 'number', (found) => number(found.count)],
];

function tableOf(source, total, what, columns, rows) {
  return rows.length > 0 && [
    table(`${count(total, `file of ${source.name} is`, `files of ${source.name} are`)} ${what}`, columns, rows, '', true),
    rows.length === 100 && none('The first 100 are listed.')];
}

function findings(source) {
  return [
    tableOf(source, source.problems_total, 'refused', problemColumns, source.problems),
    tableOf(source, source.remarked, 'listed, but worth a look', remarkColumns, source.remarks),
  ];
}

async function scan(context, source, max) {
  const answer = await post(`/v1/sources/${encodeURIComponent(source.name)}/scan`, {query: {max_removed: max}});
  context.done(`${source.name} was read: ${countsText(answer)}.` + (answer.held_removals > 0 ? ` ${count(answer.held_removals, 'removal is', 'removals are')} held.` : ''));
}

function scanDialog(context, source) {
  dialog({
    title: `Read ${source.name} now?`, action: 'Read it now',
    content: el('p', {}, 'What is there is published at once, also what is not quiet yet.'),
    run: () => scan(context, source, null),
  });
}

function letGoDialog(context, source) {
  const allowed = approval(source.held_removals, `What is gone from ${source.name}`);
  dialog({title: 'Let the held removals go', content: allowed.node, action: 'Remove them', danger: true, run: () => scan(context, source, allowed.read())});
}

/* "Good 12, Gone 1" */
function foundText(states, source) {
  const some = Object.entries(states).filter(([, n]) => n > 0);
  return some.length === 0 ? 'not yet' : some.map(([state, n], i) => [i > 0 && ', ', link(to('checks', {source, state}), CHECKS[state][1], ' ', number(n))]);
}

/* ", 2 gone": what crawlers cannot use, or may not be able to. */
export const badText = (source) => Object.entries(source.checks || {}).filter(([state, n]) => n > 0 && remedyOf({state}))
  .map(([state, n]) => [', ', link(to('checks', {source: source.name, state}), `${number(n)} ${CHECKS[state][1].toLowerCase()}`)]);

export function sourceBadge(source) {
  return source.failure ? badge('bad', 'Failing') : source.scanning ? badge('', 'Being read')
    : badText(source).length > 0 || source.problems_total > 0 || source.held_removals > 0 ? badge('warn', 'Needs a look') : badge('good', 'Well');
}

function sourceSection(context, source) {
  return el('section', {},
    el('h2', {class: 'with-buttons'}, el('span', {class: 'url'}, source.name), ' ', sourceBadge(source),
      context.may('write') && el('span', {class: 'buttons'}, button('Read it now', () => scanDialog(context, source)))),
    source.failure && el('p', {class: 'alert'}, 'Since ', time(source.failed_at), ': ', source.failure, '. Its sitemaps stay as they are.'),
    source.held_removals > 0 && el('p', {class: 'alert'},
      `${count(source.held_removals, 'sitemap is', 'sitemaps are')} gone there, but the shrink guard keeps ${source.held_removals === 1 ? 'it' : 'them'} in the index. `,
      context.may('write') && button('Let ' + number(source.held_removals) + ' go', () => letGoDialog(context, source))),
    facts([
      ['Folder', source.directory], ['List', source.upstream], ['On the web', source.url],
      ['Its sitemaps were found', source.checks ? foundText(source.checks, source.name) : null],
      [source.upstream ? 'In the list' : 'Files', source.files === undefined ? null : `${number(source.files)}, of these in the index ${number(source.listed)}${source.split_files?.length ? ', split into urlsets ' + number(source.split_files.length) : ''}`],
      ['Sitemaps', link(to('entries', {source: source.name, ...(source.index ? {index: source.index} : {})}), 'those of this source')],
      ['Last good scan', ago(source.last_good_scan_at)], ['Next look', source.next_poll_at ? time(source.next_poll_at) : null],
      ['Told of changes', source.watching === 'inotify' ? 'at once' : source.watching === 'rescans-only' ? 'by rescans only' : source.watching ? 'by rescans: the limit of watches is reached' : null],
    ]),
    findings(source));
}

export async function sources(context) {
  const list = (await get('/v1/sources')).sources;
  return {
    title: 'Sources',
    content: list.length > 0 ? list.map((source) => sourceSection(context, source))
      : none('There is none: sitemaps are registered by the API alone.'),
  };
}

/* ---- checks: sitemaps that are read where they are ---- */

async function checkNow(context, loc) {
  try {
    const {check} = await post('/v1/checks', {query: {loc}});
    context.say(`${loc}: ${CHECKS[check.state][1]}. ${check.detail || ''}`);
  } catch (error) {
    context.say(error.message);
  }
  context.refresh();
}

export async function checks(context, where) {
  const asked = Object.fromEntries(where.query);
  const list = await get('/v1/checks?' + new URLSearchParams({...asked, limit: 100}));
  const {after, state, ...rest} = asked;
  const columns = [
    ['URL', 'url', (one) => one.loc],
    ['Found', '', (one) => checkBadge(one.check)],
    ['Why', 'why', ({check}) => [check.detail, ' ', check.code && codeOf(check.code), ' ', remedyOf(check)]],
    ['So since', '', (one) => ago(one.check.since)],
    ['Last good', '', (one) => ago(one.check.good_at)],
    ['Next look', '', (one) => ago(one.check.next_at, 'none')],
  ];
  if (context.may('write')) columns.push(['Actions', 'actions', (one) => button('Look now', () => checkNow(context, one.loc), '', one.loc)]);
  return {
    title: 'How sitemaps were found',
    content: [
      'source' in rest && el('p', {}, 'Those of ', rest.source || 'no source', '. ', link('#/checks', 'Of all')),
      buttons([[undefined, [, 'All']], ...Object.entries(CHECKS)].map(([name, [, text]]) =>
        el('a', {href: to('checks', name ? {...rest, state: name} : rest), 'aria-current': name === state && 'true'}, text))),
      table('Sitemaps that are read where they are', columns, list.checks, state ? 'None is like that.' : 'None is watched.'),
      further(list.next, to('checks', {...asked, after: list.next}), 'More'),
    ],
  };
}

export async function problems(context) {
  const [health, list, indexes] = await Promise.all([get('/readyz'), get('/v1/sources'), get('/v1/indexes')]);
  const told = list.sources.filter((source) => source.problems.length > 0 || source.remarks.length > 0);
  return {
    title: 'Problems',
    content: [
      section('The server', healthBox(health)),
      section('Files of sources', told.length > 0 ? told.map(findings) : none('None is refused, and none is worth a look.')),
      section('Sitemaps elsewhere',
        list.sources.filter((one) => one.checks).map((one) => el('p', {}, one.name, ': ', foundText(one.checks, one.name))),
        el('p', {}, link(to('checks', {}), 'How all were found'), ', where a source or a site has them looked at.')),
      section('Registered sitemaps', indexes.indexes.length > 0
        ? [el('p', {}, 'Those that were accepted with a warning, by index:'),
          lines(indexes.indexes.map((one) => link(to('entries', {index: one.url, warned: '1'}), one.url)))]
        : none('There is no index yet.')),
    ],
  };
}
