/* The server's API, and the only file that asks it for anything. The token is kept for this tab and
 * this origin (sessionStorage), goes out in Authorization alone, and is forgotten with the first 401.
 * No cookie: those do not tell ports apart. */

const KEY = 'sitemapd-token';

/* What went wrong, in the server's own words (RFC 9457). `status` 0: no answer. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || 'the server answered ' + status);
    this.status = status;
    this.code = body.code || '';
    this.field = body.field || '';
    this.body = body;
  }
}

const ended = new EventTarget();

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

/* Tells `onForgotten` why, unless there was none. */
export function forgetToken(why) {
  if (!hasToken()) return;
  sessionStorage.removeItem(KEY);
  ended.dispatchEvent(new CustomEvent('ended', {detail: why}));
}

export function onForgotten(then) {
  ended.addEventListener('ended', (event) => then(event.detail));
}

function target(path, query) {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {}))
    if (value !== undefined && value !== null && value !== '') text.set(name, value);
  return path + (text.size > 0 ? '?' + text : '');
}

async function ask(method, path, {query, json, body, type, match, signal} = {}) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token !== null) headers.Authorization = 'Bearer ' + token;
  if (json !== undefined) {
    body = JSON.stringify(json);
    type = 'application/json';
  }
  if (type) headers['Content-Type'] = type;
  if (match) headers['If-Match'] = match;
  let reply;
  try {
    reply = await fetch(target(path, query), {
      method, headers, body, signal, credentials: 'omit', cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, {detail: 'The server does not answer. Is it running, and is the way to it (the tunnel, the proxy) open?'});
  }
  const text = await reply.text();
  let value = {};
  try {
    value = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Problem(reply.status, {detail: 'The answer is not from sitemapd: it is no JSON. A proxy on the way?'});
  }
  if (!reply.ok && !(path === '/readyz' && Array.isArray(value.reasons))) {
    if (reply.status === 401 && token === sessionStorage.getItem(KEY)) forgetToken(value.detail);
    throw new Problem(reply.status, value);
  }
  return {value, etag: reply.headers.get('ETag')};
}

export async function get(path, query, signal) {
  return (await ask('GET', path, {query, signal})).value;
}

/* With the tag that a write's `match` takes. */
export function getTagged(path, query) {
  return ask('GET', path, {query});
}

export async function post(path, options) {
  return (await ask('POST', path, options)).value;
}

export async function put(path, options) {
  return (await ask('PUT', path, options)).value;
}

export async function patch(path, json) {
  return (await ask('PATCH', path, {json})).value;
}

export async function remove(path, options) {
  return (await ask('DELETE', path, options)).value;
}

/* ---- what changes meanwhile ---- */

const WAIT_SECONDS = 50;
const PAUSE_FIRST = 1000, PAUSE_MOST = 30000;

let poll = null;

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/* From `since` up to what is there now; nothing is told of it. */
async function catchUp(since, signal) {
  for (;;) {
    const reply = await get('/v1/changes', {since}, signal);
    if (reply.pages.length === 0) return reply.next;
    since = reply.next;
  }
}

/* Tells `then` of changed index pages, by URL; null: it is not known which. One long poll, while the tab
 * is seen: a browser has six connections to a host for all its tabs. */
async function watch(then, state, signal) {
  let wait = PAUSE_FIRST;
  while (!signal.aborted) {
    try {
      if (state.since === null) state.since = await catchUp('0', signal);
      const reply = await get('/v1/changes', {since: state.since, wait: WAIT_SECONDS}, signal);
      state.since = reply.next;
      wait = PAUSE_FIRST;
      const urls = reply.pages.map((page) => page.url).filter((url) => url.endsWith('.xml'));
      if (urls.length > 0) then(urls);
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 403) return;
      if (error.status === 410) state.since = null;
      if (error.code === 'too-many-waiting') wait = PAUSE_MOST;
      if (error.status === 410 || error.code === 'too-many-waiting') then(null);
      await pause(wait, signal);
      wait = Math.min(2 * wait, PAUSE_MOST);
    }
  }
}

/* Begins, and goes on whenever the tab is seen again; the earlier one ends. */
export function follow(then) {
  unfollow();
  const state = {since: null, stop: null};
  const end = () => {
    if (state.stop) state.stop.abort();
    state.stop = null;
  };
  const turn = () => {
    end();
    if (document.hidden) return;
    state.stop = new AbortController();
    watch(then, state, state.stop.signal);
  };
  document.addEventListener('visibilitychange', turn);
  poll = {state, turn, end() {
    document.removeEventListener('visibilitychange', turn);
    end();
  }};
  turn();
}

export function unfollow() {
  if (poll) poll.end();
  poll = null;
}

/* What is there by now is not told: who calls this reads all anew behind it. */
export async function skip() {
  const mine = poll;
  if (!mine || mine.state.since === null) return;
  if (mine.state.stop) mine.state.stop.abort();
  try {
    mine.state.since = await catchUp(mine.state.since);
  } catch {
    mine.state.since = null; /* the next poll begins anew, or the view says what is wrong */
  }
  if (mine === poll) mine.turn();
}
