/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The server's API, and the only file that calls it. The token is kept for this tab and this origin
 * (sessionStorage), is sent in Authorization alone, and is forgotten with the first 401.
 * No cookie: cookies are shared between ports. */

const KEY = 'sitemapd-token';

/* An error of the API (RFC 9457). `status` 0: no answer. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || 'the server answered ' + status);
    this.status = status;
    this.code = body.code || '';
    this.field = body.field || '';
    this.body = body;
  }
}

let ended = null;

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

/* Calls `onForgotten` with the reason, if there was a token. */
export function forgetToken(why) {
  if (!hasToken()) return;
  sessionStorage.removeItem(KEY);
  ended(why);
}

export function onForgotten(then) {
  ended = then;
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
    throw new Problem(0, {detail: 'The server does not answer. Check that it is running and that the tunnel or proxy to it works.'});
  }
  const text = await reply.text();
  let value = {};
  try {
    value = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Problem(reply.status, {detail: 'The response is not JSON, so it is not from sitemapd. Check the proxy in front of the server.'});
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

/* With the ETag, for the `match` of a write. */
export function getTagged(path, query) {
  return ask('GET', path, {query});
}

const by = (method) => async (path, options) => (await ask(method, path, options)).value;

export const post = by('POST'), put = by('PUT'), patch = by('PATCH'), remove = by('DELETE');

/* ---- watching for changes ---- */

const WAIT_SECONDS = 50;
const PAUSE_FIRST = 1000, PAUSE_MOST = 30000;

let notify = null, since = null, stop = null;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* Skips the changes from `from` to now. */
async function catchUp(from, signal) {
  for (;;) {
    const reply = await get('/v1/changes', {since: from}, signal);
    if (reply.pages.length === 0) return reply.next;
    from = reply.next;
  }
}

/* Reports changed index pages by URL; null: unknown which. One long poll, only while the tab is visible: a
 * browser has six connections to a host for all its tabs. */
async function watch(signal) {
  let wait = PAUSE_FIRST;
  while (!signal.aborted) {
    try {
      if (since === null) since = await catchUp('0', signal);
      const reply = await get('/v1/changes', {since, wait: WAIT_SECONDS}, signal);
      since = reply.next;
      wait = PAUSE_FIRST;
      const urls = reply.pages.map((page) => page.url).filter((url) => url.endsWith('.xml'));
      if (urls.length > 0) notify(urls);
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 403) return;
      if (error.status === 410) since = null;
      if (error.code === 'too-many-waiting') wait = PAUSE_MOST;
      if (error.status === 410 || error.code === 'too-many-waiting') notify(null);
      await pause(wait);
      wait = Math.min(2 * wait, PAUSE_MOST);
    }
  }
}

function turn() {
  stop?.abort();
  if (!notify || document.hidden) return;
  stop = new AbortController();
  watch(stop.signal);
}

document.addEventListener('visibilitychange', turn);

/* Continues whenever the tab becomes visible again; null: ends. */
export function follow(then) {
  notify = then;
  since = null;
  turn();
}

/* Skips the changes until now: the caller reloads its view afterwards. */
export async function skip() {
  if (since === null) return;
  stop.abort();
  try {
    since = await catchUp(since);
  } catch {
    since = null; /* the next poll starts over, or the view shows the error */
  }
  turn();
}
