/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources: the state of each folder or remote index, scan now, removals held by the shrink guard, add and remove.
 * Checks of remote sitemaps. Problems: everything that needs attention. */
import {get, post, remove} from './api.js';
import {ago, approval, badge, button, buttons, check, codeOf, count, dialog, el, facts, field, further, lines, link, none, number, section, table, time, to} from './dom.js';
import {CHECKS, checkBadge, fileRemedy, placeRemedy, remedyOf} from './view_entries.js';
import {health} from './view_overview.js';
import {countsText} from './view_sites.js';

/* A list's members are not files, and have no column. */
export const fileNoun = (source) => (source.directory ? 'file' : 'sitemap');
const place = (found) => (found.line > 0 ? number(found.line) + (found.column > 0 ? `, column ${number(found.column)}` : '') : 'whole file');

const columnsOf = (source, what, remedy) => [
  [source.directory ? 'File' : 'Sitemap', 'url', (found) => found.path],
  [what, 'why', (found) => [found.detail, ' ', codeOf(found.code)]],
  ['What to do', 'why', remedy],
  ['Line', 'place', place],
];
const problemColumns = (source) => [
  ...columnsOf(source, 'Problem', placeRemedy),
  ['Since', '', (found) => time(found.since)],
  ['In the index', '', (found) => (found.listed ? 'last good content' : 'not yet')],
];
const remarkColumns = (source) => [
  ...columnsOf(source, 'Warning', fileRemedy),
  ['Count', 'number', (found) => number(found.count)],
];

function tableOf(source, total, what, columns, rows) {
  return rows.length > 0 && [
    table(`${count(total, `${fileNoun(source)} of ${source.name} is`, `${fileNoun(source)}s of ${source.name} are`)} ${what}`, columns(source), rows, '', true),
    rows.length === 100 && none('Only the first 100 are shown.')];
}

function findings(source) {
  return [
    tableOf(source, source.problems_total, 'rejected', problemColumns, source.problems),
    tableOf(source, source.remarked, 'listed with warnings', remarkColumns, source.remarks),
  ];
}

async function scan(context, source, max) {
  const answer = await post(`/v1/sources/${encodeURIComponent(source.name)}/scan`, {query: {max_removed: max}});
  context.done(`${source.name} scanned: ${countsText(answer)}.` + (answer.held_removals > 0 ? ` ${count(answer.held_removals, 'removal is', 'removals are')} held.` : ''));
}

const whereOf = (source) => el('p', {class: 'url'}, source.site, source.site && ', ', source.directory || source.upstream);

function scanDialog(context, source) {
  dialog({
    title: `Scan ${source.name} now?`, action: 'Scan now',
    content: [whereOf(source), el('p', {}, 'This publishes its current state at once, including files that have just changed.')],
    run: () => scan(context, source, null),
  });
}

function heldDialog(context, source) {
  const allowed = approval(source.held_removals, `The scan of ${source.name}`);
  dialog({title: `Remove the sitemaps missing from ${source.name}?`, content: [whereOf(source), allowed.node], action: 'Remove', danger: true, run: () => scan(context, source, allowed.read())});
}

/* "Good 12, Gone 1" */
function foundText(states, source) {
  const some = Object.entries(states).filter(([, n]) => n > 0);
  return some.length === 0 ? 'none yet' : some.map(([state, n], i) => [i > 0 && ', ', link(to('checks', {source, state}), CHECKS[state][1], ' ', number(n))]);
}

/* ", 2 gone": states that crawlers cannot use, or may not be able to. */
export const badText = (source) => Object.entries(source.checks || {}).filter(([state, n]) => n > 0 && remedyOf({state}))
  .map(([state, n]) => [', ', link(to('checks', {source: source.name, state}), `${number(n)} ${CHECKS[state][1].toLowerCase()}`)]);

/* What a failure of the source means. */
export const failureText = (source) => source.failure + (source.last_good_scan_at ? '. Its sitemaps stay in the index.' : '. It has never been read, so the index has none of its sitemaps. Correct its address, or make it available there.');

export function sourceBadge(source) {
  return source.failure ? badge('bad', 'Failing') : source.scanning ? badge('', 'Scanning')
    : badText(source).length > 0 || source.problems_total > 0 || source.held_removals > 0 ? badge('warn', 'Needs attention') : source.last_scan_at ? badge('good', 'OK') : badge('', 'Not read yet');
}

function removeDialog(context, source) {
  dialog({
    title: `Remove the source ${source.name}?`, action: 'Remove', danger: true,
    content: [whereOf(source), el('p', {}, 'The server stops reading it. Its sitemaps stay in the index.')],
    async run() {
      await remove('/v1/sources/' + encodeURIComponent(source.name));
      context.done(`The source ${source.name} is removed.`);
    },
  });
}

function addDialog(context, indexes) {
  const name = field({label: 'Name', name: 'name', hint: 'The name is shown as the owner of the sitemaps that the source registers.'});
  const kind = field({label: 'Reads', name: 'kind', options: [['upstream', 'a sitemap index on the web'], ['directory', 'a folder on the server']]});
  const upstream = field({label: 'URL of the sitemap index', name: 'upstream', type: 'url', hint: 'The server polls it and the sitemaps that it lists.'});
  const directory = field({label: 'Folder', name: 'directory', hint: 'Absolute path below a source_root of the configuration.'});
  const url = field({label: 'URL of the folder', name: 'url', type: 'url', hint: 'Ends with a slash.'});
  const index = field({label: 'Index that lists its sitemaps', name: 'index', hint: 'Required if the URL is not on one of your sites.', options: [['', 'Choose by directory'], ...indexes.map((one) => [one.url, one.url])]});
  const serve = check({label: 'Serve the files of the folder to crawlers', name: 'serve'});
  const turn = () => {
    upstream.node.hidden = kind.input.value !== 'upstream';
    for (const one of [directory, url, serve]) one.node.hidden = !upstream.node.hidden;
  };
  turn();
  kind.input.addEventListener('change', turn);
  dialog({
    title: 'Add a source', content: [name, kind, upstream, directory, url, serve, index].map(({node}) => node), action: 'Add',
    async run() {
      const fields = kind.input.value === 'upstream' ? [name, upstream, index] : [name, directory, url, index];
      const json = Object.fromEntries(fields.map(({input}) => [input.name, input.value.trim()]).filter(([, value]) => value !== ''));
      if (kind.input.value === 'directory') json.serve = serve.input.checked;
      await post('/v1/sources', {json});
      context.done(`Source ${json.name} added.`);
    },
  });
}

function sourceSection(context, source) {
  return el('section', {},
    el('h2', {class: 'with-buttons'}, el('span', {class: 'url'}, source.name), ' ', sourceBadge(source),
      context.may('write') && el('span', {class: 'buttons'}, button('Scan now', () => scanDialog(context, source), '', source.name),
        context.may('admin') && !source.managed && button('Remove', () => removeDialog(context, source), '', source.name))),
    source.failure && el('p', {class: 'alert'}, 'Since ', time(source.failed_at), ': ', failureText(source)),
    source.held_removals > 0 && el('p', {class: 'alert'},
      `${count(source.held_removals, 'sitemap is', 'sitemaps are')} missing there, but the shrink guard keeps ${source.held_removals === 1 ? 'it' : 'them'} in the index. `,
      context.may('write') && button('Remove ' + number(source.held_removals), () => heldDialog(context, source))),
    facts([
      ['Site', source.site && el('span', {class: 'url'}, source.site)], ['Folder', source.directory], ['Remote index', source.upstream], ['URL of the folder', source.url],
      ['Checks', source.checks ? foundText(source.checks, source.name) : null],
      [source.upstream ? 'Sitemaps there' : 'Files', source.files === undefined ? null : `${number(source.files)}, ${number(source.listed)} ${source.upstream ? '' : 'good and '}in the index${source.split_files?.length ? `, ${number(source.split_files.length)} split into urlsets` : ''}`],
      ['Sitemaps', link(to('entries', {source: source.name, ...(source.index ? {index: source.index} : {})}), 'show')],
      ['Last good scan', ago(source.last_good_scan_at)], ['Next poll', source.next_poll_at ? time(source.next_poll_at) : null],
      ['Changes are noticed', source.watching === 'inotify' ? 'at once' : source.watching === 'rescans-only' ? 'by rescans' : source.watching ? 'by rescans (the inotify watch limit is reached)' : null],
    ]),
    findings(source));
}

export async function sources(context) {
  const [{sources: list}, {indexes}] = await Promise.all([get('/v1/sources'), get('/v1/indexes', {limit: 1000})]);
  return {
    title: 'Sources',
    content: [
      context.may('admin') && buttons(button('Add a source', () => addDialog(context, indexes))),
      list.length > 0 ? list.map((source) => sourceSection(context, source))
        : none('No sources: sitemaps are registered by the API or by commands.'),
    ],
  };
}

/* ---- checks of remote sitemaps ---- */

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
    ['State', '', (one) => checkBadge(one.check)],
    ['Detail', 'why', ({check}) => [check.detail, ' ', check.code && codeOf(check.code), ' ', remedyOf(check)]],
    ['Since', '', (one) => ago(one.check.since)],
    ['Last good', '', (one) => ago(one.check.good_at)],
    ['Next check', '', (one) => (Date.parse(one.check.next_at) < Date.now() ? 'due' : ago(one.check.next_at, 'none'))],
  ];
  if (context.may('write')) columns.push(['Actions', 'actions', (one) => button('Check now', () => checkNow(context, one.loc), '', one.loc)]);
  return {
    title: 'Checks of sitemaps',
    content: [
      'source' in rest && el('p', {}, rest.source ? ['Source ', rest.source] : 'Without a source', '. ', link('#/checks', 'Show all')),
      buttons([[undefined, [, 'All']], ...Object.entries(CHECKS)].map(([name, [, text]]) =>
        el('a', {href: to('checks', name ? {...rest, state: name} : rest), 'aria-current': name === state && 'true'}, text))),
      table('Checked sitemaps', columns, list.checks, list.next ? 'No match in this part.' : state ? 'No match.' : 'No sitemaps are checked.'),
      further(list.next, to('checks', {...asked, after: list.next}), 'More'),
    ],
  };
}

export async function problems(context) {
  const [list, indexes, {engines}] = await Promise.all([get('/v1/sources'), get('/v1/indexes'), get('/v1/engines')]);
  const noted = list.sources.filter((source) => source.problems.length > 0 || source.remarks.length > 0);
  return {
    title: 'Problems',
    content: [
      section('Server', await health(context, list.sources, engines)),
      section('Files of sources', noted.length > 0 ? noted.map(findings) : none('No rejected files, no warnings.')),
      section('Remote sitemaps',
        list.sources.filter((one) => one.checks).map((one) => el('p', {}, one.name, ': ', foundText(one.checks, one.name))),
        el('p', {}, link(to('checks', {}), 'All checks'), ' of sitemaps that a source or a site (check = yes) watches.')),
      section('Registered sitemaps', indexes.indexes.length > 0
        ? [el('p', {}, 'Look for entries with warnings in an index:'),
          lines(indexes.indexes.map((one) => link(to('entries', {index: one.url, warned: '1'}), one.url)))]
        : none('No indexes yet.')),
    ],
  };
}
