/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The frame: sign-in, the view that the address (#/view/…) names, notices of changes. A view is a function
 * (context, address) that calls the API and returns {title, content}. */
import * as api from './api.js';
import {alertBox, button, buttons, closeDialogs, codeOf, count, el, field, fill, link, none} from './dom.js';
import {overview} from './view_overview.js';
import {index, sites} from './view_sites.js';
import {entries, entry} from './view_entries.js';
import {checks, problems, sources} from './view_sources.js';
import {crawler, crawlers} from './view_crawlers.js';
import {engine} from './view_engines.js';
import {change, history} from './view_history.js';
import {access} from './view_access.js';
import {charts} from './view_stats.js';

const VIEWS = {overview, entries, entry, url: entry, sites, index, urlset: index, sources, checks, problems, crawlers, crawler, engine, history, change, access, charts};
const NAV = [
  ['overview', 'Overview'], ['entries', 'Sitemaps'], ['sites', 'Sites'], ['sources', 'Sources'],
  ['crawlers', 'Crawlers'], ['history', 'History'], ['problems', 'Problems'], ['access', 'Access'],
];
const PART_OF = {entry: 'entries', url: 'entries', index: 'sites', urlset: 'sites', checks: 'sources', crawler: 'crawlers', engine: 'crawlers', change: 'history', charts: 'overview'};
/* A tab that is hidden this long forgets its token. */
const HIDDEN_MS = 30 * 60 * 1000;

const byId = (id) => document.getElementById(id);
const main = byId('main'), nav = byId('nav'), who = byId('who'), status = byId('status'), show = byId('show');

let me = null;
let shown = 0; /* number of the latest view: answers for earlier ones are dropped */
let changed = 0;
let said = false;
let current = null;

/* ---- the status line ---- */

/* Stays for the next view if it was shown on the way there. */
function say(...text) {
  fill(status, text);
  said = text.length > 0;
}

function forgetChanges() {
  changed = 0;
  show.hidden = true;
}

/* Rows never move under a pointer: a notice announces changes, and a button shows them. The overview reloads by
 * itself, but not while the keyboard focus is in it or a dialog is open. */
function note(urls) {
  changed += urls === null ? 1 : urls.length;
  const within = main.contains(document.activeElement) && document.activeElement !== main;
  if (current.live && !within && document.querySelector('dialog') === null) {
    refresh();
    return;
  }
  say(count(changed, 'index page') + ' changed since this view was loaded.');
  show.hidden = false;
}

/* ---- sign-in ---- */

const RANK = {read: 1, write: 2, admin: 3};

const context = {
  get me() {
    return me;
  },
  /* Actions that the token does not allow have no button. */
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
  closeDialogs();
  signIn(why);
}

function signIn(why) {
  const token = field({
    label: 'Token', name: 'token', type: 'password', required: true,
    hint: 'This tab keeps the token until you sign out or close the tab.',
  });
  const alert = el('div', {role: 'alert'});
  const form = el('form', {class: 'sign-in', novalidate: true, onsubmit: async (event) => {
    event.preventDefault();
    fill(alert);
    const text = token.input.value.trim();
    if (text === '') {
      fill(alert, alertBox(new Error('Enter a token')));
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
  el('h2', {}, 'How to get a token'),
  el('p', {}, 'Run this command on the server\'s machine. It prints the token once:'),
  el('p', {}, codeOf('sitemapd token add NAME --role read')),
  none('Roles: read shows everything; write can also register, change and remove; admin can also manage sites, sources and tokens, and freeze.'));
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

const missing = () => ({title: 'Page not found', content: link('#/overview', 'Go to the overview')});

/* `moved`: another view, so the focus moves to its beginning. */
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
    made = {title: 'This page cannot be shown', content: [alertBox(error), button('Try again', () => render(true))]};
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

/* Loads the view again in place; the status line stays, and the user's own change causes no notice. */
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
  closeDialogs(); /* Back leaves the view that a dialog belongs to */
  if (me !== null) render(true);
});

let hiddenAt = 0;
let hiddenTimer = 0;
const leave = () => api.forgetToken('This tab was hidden for 30 minutes and forgot its token. Sign in again.');

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
byId('zone').textContent = 'Times are in ' + Intl.DateTimeFormat().resolvedOptions().timeZone + '.';
if (api.hasToken()) enter().catch((error) => error.status !== 401 && signedOut(error.message));
else signIn('');
