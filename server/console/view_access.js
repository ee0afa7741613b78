/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Access: the token that is signed in, and for role admin all tokens and their revocation. None is made here, since
 * a stolen token could make others that outlive it: a dialog composes the command that makes one. */
import {get, remove} from './api.js';
import {badge, button, buttons, check, codeOf, dialog, el, facts, field, fill, further, section, table, time, to} from './dom.js';

const ROLES = {read: 'view only', write: 'also register, change and remove', admin: 'also sites, indexes, sources, freezing and tokens'};
const DAYS = 90; /* a new token expires after, unless another date is chosen */

function revokeDialog(context, one) {
  dialog({
    title: `Revoke the token ${one.name}?`, danger: true, action: 'Revoke',
    content: [
      el('p', {}, 'The server will reject it. This cannot be undone.'),
      one.name === context.me.name && el('p', {class: 'alert'}, 'You are signed in with this token.'),
    ],
    async run() {
      await remove('/v1/tokens/' + encodeURIComponent(one.name));
      context.done(`The token ${one.name} is revoked.`);
    },
  });
}

const quoted = (text) => (/^[\w.:\/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function newTokenDialog(context, sites) {
  const all = ['', 'All sites'];
  const name = field({label: 'Name', name: 'name', hint: 'One for each person or program: the history shows it.'});
  const role = field({label: 'Role', name: 'role', value: 'read', options: Object.entries(ROLES).map(([value, text]) => [value, `${value}: ${text}`])});
  const site = field({label: 'Site', name: 'site', options: [...(context.me.site ? [] : [all]), ...sites.map((one) => [one.origin, one.origin])]});
  const prefix = field({label: 'Only URLs that begin with (optional)', name: 'prefix', hint: 'Absolute; ends with a slash, or with - _ or .'});
  const own = check({label: 'May change only what it registered itself', name: 'own'});
  const expires = field({label: 'Expires', name: 'expires', type: 'date', value: new Date(Date.now() + DAYS * 86400000).toISOString().slice(0, 10), hint: 'Empty: never.'});
  const command = codeOf('');
  const compose = () => {
    own.input.disabled = role.input.value === 'read';
    const parts = ['sitemapd token add', quoted(name.input.value.trim() || 'NAME'), '--role', role.input.value];
    for (const {input} of [site, prefix, expires]) if (input.value.trim()) parts.push('--' + input.name, quoted(input.value.trim()));
    if (own.input.checked && !own.input.disabled) parts.push('--own');
    fill(command, parts.join(' '));
  };
  compose();
  const body = el('div', {oninput: compose}, name.node, role.node, site.node, prefix.node, own.node, expires.node,
    el('p', {}, 'Run this command on the server\'s machine, as the user that runs the server. It prints the token once.'), el('p', {role: 'status', class: 'command'}, command));
  dialog({
    title: 'New token', content: body, action: 'Copy the command',
    async run() {
      if (!/^[\w.-]{1,64}$/.test(name.input.value.trim())) throw Object.assign(new Error('must be 1 to 64 of A-Z a-z 0-9 . _ -'), {code: '', field: 'name'});
      getSelection().selectAllChildren(command); /* where the browser copies nothing, it is selected */
      await navigator.clipboard?.writeText(command.textContent).then(() => context.say('Copied.'), () => {});
      return false;
    },
  });
}

const scope = (one) => [one.prefix || one.site || 'all sites', one.own ? ', only what it registered itself' : ''];

export async function access(context, where) {
  const me = context.me;
  const after = where.query.get('after');
  const [list, {sites}] = context.may('admin') ? await Promise.all([get('/v1/tokens', {after}), get('/v1/sites', {limit: 1000})]) : [null, {}];
  return {
    title: 'Access',
    content: [
      section('You', facts([
        ['Token', me.name], ['Role', `${me.role}: ${ROLES[me.role]}`], ['Scope', scope(me)], ['Expires', time(me.expires_at)],
      ])),
      list && section('Tokens',
        buttons(button('New token', () => newTokenDialog(context, sites))),
        table('Tokens of the catalogue', [
          ['Name', '', (one) => el('strong', {}, one.name)],
          ['Role', '', (one) => one.role],
          ['Scope', '', scope],
          ['Last used (to the hour)', '', (one) => time(one.last_used_at)],
          ['Expires', '', (one) => time(one.expires_at)],
          ['Actions', 'actions', (one) => (one.managed ? badge('', 'in the configuration') : button('Revoke', () => revokeDialog(context, one), '', one.name))],
        ], list.tokens, 'There are no tokens in the catalogue.'),
        further(list.next, to('access', {after: list.next}), 'More tokens')),
    ],
  };
}
