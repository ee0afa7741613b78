/* The frame: who is signed in, which view the address (#/view/…) names, what changed meanwhile. A view
 * is a function (context, address) that asks the API and answers {title, content}. */
import * as api from './api.js';
import {alertBox, button, buttons, codeOf, count, el, field, fill, link, none} from './dom.js';
import {overview} from './view_overview.js';
import {index, sites} from './view_sites.js';
import {entries, entry} from './view_entries.js';
import {checks, problems, sources} from './view_sources.js';
import {crawler, crawlers} from './view_crawlers.js';
import {change, history} from './view_history.js';
import {access} from './view_access.js';

const VIEWS = {overview, entries, entry, url: entry, sites, index, urlset: index, sources, checks, problems, crawlers, crawler, history, change, access};
const NAV = [
  ['overview', 'Overview'], ['entries', 'Sitemaps'], ['sites', 'Sites'], ['sources', 'Sources'],
  ['crawlers', 'Crawlers'], ['history', 'History'], ['problems', 'Problems'], ['access', 'Access'],
];
const PART_OF = {entry: 'entries', url: 'entries', index: 'sites', urlset: 'sites', checks: 'sources', crawler: 'crawlers', change: 'history'};
/* A tab that nobody has looked at for so long forgets its token. */
const HIDDEN_MS = 30 * 60 * 1000;

const byId = (id) => document.getElementById(id);
const main = byId('main'), nav = byId('nav'), who = byId('who'), status = byId('status'), show = byId('show');

let me = null;
let shown = 0; /* the number of the latest view: an answer for an earlier one is dropped */
let changed = 0;
let said = false;
let current = null;

/* ---- what is said of it ---- */

/* Stays over the next view, if it was said on the way there. */
function say(...text) {
  fill(status, text);
  said = text.length > 0;
}

function forgetChanges() {
  changed = 0;
  show.hidden = true;
}

/* Rows never move under a pointer: a change is told, and shown when asked for. The overview moves by
 * itself, but not while somebody is in it with the keyboard or in a dialog. */
function note(urls) {
  changed += urls === null ? 1 : urls.length;
  const within = main.contains(document.activeElement) && document.activeElement !== main;
  if (current.live && !within && document.querySelector('dialog') === null) {
    refresh();
    return;
  }
  say(count(changed, 'change') + ' of index pages since this was read.');
  show.hidden = false;
}

/* ---- who is signed in ---- */

const RANK = {read: 1, write: 2, admin: 3};

const context = {
  get me() {
    return me;
  },
  /* What a token may not do has no button. */
  may: (role) => me !== null && RANK[me.role] >= RANK[role],
  hasHistory: () => me !== null && me.prefix === null && !me.own,
  say,
  refresh,
  done(...text) {
    say(...text);
    refresh();
  },
  skip: api.skip,
  async go(hash) {
    if (location.hash === hash) return refresh();
    await api.skip();
    location.hash = hash;
  },
};

function signedOut(why) {
  me = null;
  shown++;
  api.follow(null);
  forgetChanges();
  say();
  nav.hidden = who.hidden = true;
  for (const open of document.querySelectorAll('dialog')) open.close();
  signIn(why);
}

function signIn(why) {
  const token = field({
    label: 'Token', name: 'token', type: 'password', required: true,
    hint: 'It stays in this tab and is forgotten when the tab is closed.',
  });
  const alert = el('div', {role: 'alert'});
  const form = el('form', {class: 'sign-in', novalidate: true, onsubmit: async (event) => {
    event.preventDefault();
    fill(alert);
    const text = token.input.value.trim();
    if (text === '') {
      fill(alert, alertBox(new Error('A token is needed')));
      token.input.focus();
      return;
    }
    api.keepToken(text);
    try {
      await enter();
    } catch (error) {
      api.forgetToken('');
      if (error.status !== 401) fill(alert, alertBox(error));
    }
  }},
  el('h1', {}, 'Sign in'), alert, token.node,
  buttons(el('button', {type: 'submit', class: 'main'}, 'Sign in')),
  el('h2', {}, 'Where do I get one?'),
  el('p', {}, 'A command on the machine where the server runs prints it, once:'),
  el('p', {}, codeOf('sitemapd token add NAME --role read')),
  none('The role read is to look, write to register and remove too, admin also for sites, freezing and tokens.'));
  if (why) alert.append(alertBox(new Error(why)));
  document.title = 'Sign in - sitemapd';
  fill(main, form);
  token.input.focus();
}

function showMe() {
  fill(nav, NAV.filter(([name]) => name !== 'history' || context.hasHistory())
    .map(([name, text]) => el('a', {href: '#/' + name, 'data-view': name}, text)));
  fill(who, el('span', {}, me.name, ' ', el('span', {class: 'role'}, `(${me.role}${me.site ? ', ' + me.site : ''})`)),
    button('Sign out', () => api.forgetToken('')));
  nav.hidden = who.hidden = false;
}

async function enter() {
  me = await api.get('/v1/token');
  showMe();
  await render(true);
  api.follow(note);
}

/* ---- the view ---- */

function address() {
  const text = location.hash.replace(/^#\/?/, '');
  const [path, query] = text.split('?');
  const parts = path.split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return {view: parts[0] || 'overview', id: parts[1] || '', query: new URLSearchParams(query || '')};
}

function markNav(view) {
  for (const item of nav.children)
    item.ariaCurrent = item.dataset.view === (PART_OF[view] || view) ? 'page' : null;
}

const missing = () => ({title: 'There is no such view', content: link('#/overview', 'To the overview')});

/* `moved`: another view, so the focus goes to its beginning. */
async function render(moved) {
  const number = ++shown;
  const where = address();
  const view = Object.hasOwn(VIEWS, where.view) ? VIEWS[where.view] : missing;
  const slow = setTimeout(() => main.setAttribute('aria-busy', 'true'), 200);
  let made;
  forgetChanges();
  try {
    made = await view(context, where);
  } catch (error) {
    if (error.status === 401) return;
    if (number === shown && !('status' in error)) console.error(error);
    made = {title: 'This cannot be shown now', content: [alertBox(error), button('Try again', () => render(true))]};
  } finally {
    clearTimeout(slow);
  }
  if (number !== shown || me === null) return;
  current = made;
  main.removeAttribute('aria-busy');
  markNav(where.view);
  document.title = made.title + ' - sitemapd';
  const within = main.contains(document.activeElement);
  fill(main, el('h1', {}, made.title), made.content);
  if (made.begin) made.begin();
  if (moved && !said) say();
  said = false;
  if (moved || within) main.focus({preventScroll: true});
  if (moved) scrollTo(0, 0);
}

/* The same view anew, where it stands; what was said stays, and one's own change is no news. */
async function refresh() {
  await api.skip();
  await render(false);
}

show.addEventListener('click', () => {
  say();
  refresh();
  main.focus({preventScroll: true});
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', () => {
  if (me !== null) render(true);
});

let hiddenAt = 0;
let hiddenTimer = 0;
const leave = () => api.forgetToken('This tab was out of sight for 30 minutes, so it forgot its token.');

document.addEventListener('visibilitychange', () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenAt = Date.now();
    hiddenTimer = setTimeout(leave, HIDDEN_MS);
  } else if (hiddenAt !== 0 && Date.now() - hiddenAt >= HIDDEN_MS) {
    leave(); /* a machine that slept runs no timers */
  }
});

api.onForgotten(signedOut);
byId('zone').textContent = 'Times are those of ' + Intl.DateTimeFormat().resolvedOptions().timeZone + '.';
if (api.hasToken()) enter().catch((error) => error.status !== 401 && signedOut(error.message));
else signIn('');
