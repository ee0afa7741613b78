/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The parts of all views: elements, tables, fields, dialogs, numbers and times as text.
 * Text from the server becomes a text node or the value of an attribute, never markup. */

/* el('a', {href: '#/x', class: 'y', onclick: f}, 'text', node, [more]) */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  set(node, attributes);
  add(node, children);
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if ((value ?? false) === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
}

/* Replaces the content of a node. */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
}

/* What would reverse or move the text around it (UAX 9) is shown by its number: a name that has
 * it would read as another one. */
const plain = (text) => text.replace(/[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
  (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

function add(node, children) {
  for (const child of children.flat(Infinity))
    if ((child ?? false) !== false) node.append(typeof child === 'string' ? plain(child) : child);
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(document.querySelector('svg').namespaceURI, tag);
  set(node, attributes);
  add(node, children);
  return node;
}

/* ---- words ---- */

const NUMBER = new Intl.NumberFormat('en-GB');
const DAY = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', year: 'numeric'});
const CLOCK = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit'});

export const number = (n) => n == null ? 'unknown' : NUMBER.format(n);

export const count = (n, one, many = one + 's') => number(n) + ' ' + (n === 1 ? one : many);

export function bytes(n) {
  if (n == null) return 'unknown';
  let unit = 0;
  while (n >= 1000 && unit < 3) {
    n /= 1000;
    unit++;
  }
  return (unit === 0 ? n : n.toFixed(n < 10 ? 1 : 0)) + ' ' + ['bytes', 'kB', 'MB', 'GB'][unit];
}

/* "45 s", "12 min", "3 h", "2 days" */
export function span(seconds) {
  if (seconds < 90) return Math.max(0, Math.round(seconds)) + ' s';
  if (seconds < 5400) return Math.round(seconds / 60) + ' min';
  if (seconds < 129600) return Math.round(seconds / 3600) + ' h';
  return Math.round(seconds / 86400) + ' days';
}

/* "today, 14:02" or "21 Nov 2026, 14:02"; UTC as the title. */
export function time(iso, none = 'never') {
  if (!iso) return soft(none);
  const date = new Date(iso), day = DAY.format(date);
  return el('time', {datetime: iso, title: iso}, day === DAY.format(new Date()) ? 'today' : day, ', ', CLOCK.format(date));
}

export function ago(iso, none = 'never') {
  if (!iso) return soft(none);
  const seconds = (Date.now() - new Date(iso)) / 1000;
  return el('time', {datetime: iso, title: iso}, seconds < 0 ? 'in ' + span(-seconds) : span(seconds) + ' ago');
}

/* ---- pieces ---- */

/* Secondary text. */
export const soft = (...text) => el('span', {class: 'none'}, text);
export const none = (...text) => el('p', {class: 'none'}, text);

export const codeOf = (text) => el('code', {}, text);
export const buttons = (...all) => el('p', {class: 'buttons'}, all);
export const lines = (all, kind = 'lines') => el('ul', {class: kind}, all.map((one) => el('li', {}, one)));
export const further = (next, hash, text) => next && el('p', {}, link(hash, text));

/* The address of a view: to('entries', {index: …}). */
export const to = (view, query) => `#/${view}?${new URLSearchParams(query)}`;

/* A state is a word in a frame, never a colour alone. */
export const badge = (kind, text) => el('span', {class: 'badge ' + kind}, text);

export const link = (hash, ...children) => el('a', {href: hash}, children);

/* A public address, in a new tab. */
export const outside = (url, ...children) => el('a', {href: url, target: '_blank', rel: 'noopener noreferrer', class: 'url'}, children.length > 0 ? children : url);

/* `of`: the object of the action, where several buttons have the same text. */
export const button = (text, onclick, kind, of) => el('button', {type: 'button', class: kind || null, onclick, 'aria-label': of && text + ' ' + of}, text);

export const section = (title, ...children) => el('section', {}, el('h2', {}, title), children);

/* columns: [[name, kind, cell(row)], …]; kind: 'number', 'url', 'actions', ''. On a narrow screen each row is
 * a list of names and values; the roles keep it a table for screen readers. `empty` is shown if there are no
 * rows; `loud` shows the caption, where no heading names the table. */
export function table(caption, columns, rows, empty, loud) {
  if (rows.length === 0) return none(empty);
  const save = () => download(caption, [...node.rows].map((row) => [...row.cells].filter((one) => !one.classList.contains('actions')).map(textOf)));
  const name = ([text, kind]) => el('th', {scope: 'col', role: 'columnheader', class: kind || null}, text);
  const cell = ([text, kind, of], row) =>
    el('td', {role: 'cell', class: kind || null, 'data-name': text}, el('span', {class: 'value'}, of(row)));
  const node = el('table', {role: 'table'},
    el('caption', {class: !loud && 'unseen'}, caption),
    el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, columns.map(name))),
    el('tbody', {role: 'rowgroup'}, rows.map((row) => el('tr', {role: 'row'}, columns.map((column) => cell(column, row))))));
  return rows.length < 2 ? node : [node, el('p', {class: 'save'}, button('Save as CSV', save, 'plain', caption))];
}

/* What a cell shows; a time as UTC and a number without separators, so that programs can read it. */
function textOf(cell) {
  const at = cell.querySelector('time');
  if (at && at.textContent === cell.textContent) return at.dateTime;
  const text = cell.textContent.replace(/\s+/g, ' ').trim();
  return /^[0-9,]+$/.test(text) ? text.replaceAll(',', '') : text;
}

/* RFC 4180. A spreadsheet would run a text that begins as a formula does, also after a semicolon. */
function download(name, rows) {
  const cell = (text) => '"' + text.replace(/(^|[;\t]\s*)([=+\-@])/g, "$1'$2").replaceAll('"', '""') + '"';
  const url = URL.createObjectURL(new Blob(['\ufeff', rows.map((row) => row.map(cell).join(',') + '\r\n').join('')], {type: 'text/csv'}));
  el('a', {href: url, download: name.toLowerCase().replace(/[^a-z0-9]+/g, ' ').trim().replaceAll(' ', '-') + '.csv'}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* [[name, value], …] without those whose value is null or false. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => (value ?? false) !== false);
  return known.length > 0 && el('dl', {class: 'facts'}, known.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

/* Numbers of up to 90 days as lines, with a gap where a number is null; the table beside it has the same numbers. */
export function chart(title, days, series, text = (most) => `at most ${number(most)}`) {
  const width = 360, height = 72, most = Math.max(1, ...days.flatMap((day) => series.map((one) => one.of(day))));
  const x = (i) => (days.length < 2 ? width / 2 : (i * width) / (days.length - 1)).toFixed(1);
  const y = (value) => (height - 2 - (value * (height - 4)) / most).toFixed(1);
  const line = (one) => svg('path', {class: 'line ' + one.kind, d: days.map((day, i) => one.of(day) !== null &&
    (i > 0 && one.of(days[i - 1]) !== null ? 'L' : 'M') + x(i) + ',' + y(one.of(day)) + 'h.1').filter(Boolean).join('')});
  return el('figure', {class: 'chart'},
    svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title, preserveAspectRatio: 'none'}, series.map(line)),
    el('figcaption', {}, series.length > 1 && series.map((one) => el('span', {class: 'key ' + one.kind}, one.name)), el('span', {}, `${days[0].day} to ${days.at(-1).day}, ${text(most)}`)));
}

export const alertBox = (problem) => el('div', {class: 'alert', role: 'alert'}, problemText(problem));

function problemText(problem) {
  const detail = problem.message.charAt(0).toUpperCase() + problem.message.slice(1);
  const code = problem.code ? [' ', codeOf(problem.code)] : null;
  const end = /[.!?]$/.test(detail) ? '' : '.';
  const named = problem.field && !problem.message.startsWith(problem.field);
  return el('p', {}, named ? [el('strong', {}, problem.field), ': ', problem.message, end] : detail + end, code);
}

/* ---- fields and dialogs ---- */

let serial = 0;

/* {label, name, hint, type, value, options: [[value, text] or [group, [[value, text], …]], …]}: {node, input} */
export function field({label, name, hint, options, value, ...more}) {
  const id = 'f' + ++serial;
  const about = hint ? id + 'h' : null;
  const option = ([v, text]) => (Array.isArray(text) ? el('optgroup', {label: v}, text.map(option)) : el('option', {value: v, selected: v === value}, text));
  const input = options
    ? el('select', {id, name, 'aria-describedby': about, ...more}, options.map(option))
    : el('input', {id, name, type: 'text', value, 'aria-describedby': about, autocomplete: 'off', spellcheck: 'false', ...more});
  return {input, node: el('p', {class: 'field'}, el('label', {for: id}, label), input, hint ? el('span', {class: 'hint', id: about}, hint) : null)};
}

export const searchForm = (fields, send, text = 'Search') => el('form', {class: 'search', role: 'search', novalidate: true, onsubmit(event) {
  event.preventDefault();
  send();
}}, fields.map(({node}) => node), el('p', {class: 'field buttons'}, el('button', {type: 'submit', class: 'main'}, text)));

/* Of indexes and urlsets. */
export const listField = (name, lists, value, all = 'All') => {
  const [urlsets, indexes] = [true, false].map((is) => lists.filter((one) => 'with' in one === is).map((one) => [one.url, one.url]));
  return field({label: 'Index or urlset', name, value, options: [['', all], ...indexes, ['Urlsets', urlsets]].filter(([, text]) => text.length > 0)});
};

export function check({label, name, checked}) {
  const id = 'f' + ++serial;
  const input = el('input', {id, name, type: 'checkbox', checked});
  return {input, node: el('p', {class: 'field check'}, input, el('label', {for: id}, label))};
}

/* A dialog with a form. `run` sends it; an error is shown at the invalid field; false keeps the dialog open.
 * The native dialog returns the focus to the button that opened it. */
export function dialog({title, content, action, danger, run}) {
  const id = 'd' + ++serial;
  const alert = el('div', {class: 'alert', id: id + 'a', role: 'alert'});
  const body = el('div', {class: 'body'}, content);
  const submit = el('button', {type: 'submit', class: danger ? 'danger' : 'main'}, action);
  const wait = el('p', {class: 'wait'});
  const form = el('form', {novalidate: true}, el('h2', {id}, title), body, alert, wait,
    buttons(submit, button('Cancel', () => node.close())));
  const node = el('dialog', {'aria-labelledby': id}, form);
  const self = {submit, isOpen: () => node.open};
  let busy = false;

  const blame = (name) => {
    for (const input of form.querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid');
    const input = name ? form.elements.namedItem(name) : null;
    if (!input || !input.setAttribute) return;
    input.setAttribute('aria-invalid', 'true');
    input.focus();
  };
  self.fail = (problem) => {
    fill(alert, problemText(problem));
    blame(problem.field);
  };
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    const since = Date.now();
    const clock = setInterval(() => wait.setAttribute('data-since', Math.round((Date.now() - since) / 1000) + ' s'), 1000);
    form.setAttribute('aria-busy', 'true');
    wait.setAttribute('data-since', '');
    fill(alert);
    blame('');
    try {
      if ((await run(self)) !== false) node.close();
    } catch (error) {
      if (error.name !== 'Problem' && !('code' in error)) throw error;
      self.fail(error);
    } finally {
      clearInterval(clock);
      busy = false;
      form.removeAttribute('aria-busy');
    }
  });
  node.addEventListener('close', () => node.remove());
  document.body.append(node);
  node.showModal();
  const first = body.querySelector('input, select, textarea');
  if (first) first.focus();
  return self;
}

export function closeDialogs() {
  for (const open of document.querySelectorAll('dialog')) open.close();
}

/* If the shrink guard holds a change, the person types the number of removals to confirm: {node, read()}. */
export function approval(wouldRemove, what) {
  const typed = field({
    label: `Type ${wouldRemove} to confirm`, name: 'max_removed', inputmode: 'numeric',
    hint: `${what} would remove ${count(wouldRemove, 'URL')}, more than the shrink guard allows without confirmation.`,
  });
  return {
    node: el('div', {class: 'approval'}, typed.node),
    input: typed.input,
    read() {
      if (typed.input.value.replace(/[\s,.]/g, '') !== String(wouldRemove))
        throw Object.assign(new Error(`must be the number ${wouldRemove}`), {code: '', field: 'max_removed'});
      return wouldRemove;
    },
  };
}
