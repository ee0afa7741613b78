/* Access: who one is, and for role admin the tokens and the end of one. None is made here: who could
 * make tokens by a stolen one would keep a way in. */
import {get, remove} from './api.js';
import {badge, button, codeOf, dialog, el, facts, further, none, section, table, time, to} from './dom.js';

const ROLES = {read: 'to look', write: 'to register, change and remove, too', admin: 'also sites, indexes, freezing and tokens'};

function endDialog(context, one) {
  dialog({
    title: `End the token ${one.name}?`, danger: true, action: 'End it',
    content: [
      el('p', {}, 'From that moment on it is worth nothing, and it cannot be brought back.'),
      one.name === context.me.name && el('p', {class: 'alert'}, 'It is the one that you are signed in with.'),
    ],
    async run() {
      await remove('/v1/tokens/' + encodeURIComponent(one.name));
      context.done(`The token ${one.name} is ended.`);
    },
  });
}

const scope = (one) => [one.prefix || one.site || 'all sites', one.own ? ', what it registered itself' : ''];

export async function access(context, where) {
  const me = context.me;
  const after = where.query.get('after');
  const list = context.may('admin') ? await get('/v1/tokens', {after}) : null;
  return {
    title: 'Access',
    content: [
      section('You', facts([
        ['Token', me.name], ['Role', `${me.role}: ${ROLES[me.role]}`], ['For', scope(me)], ['Expires', time(me.expires_at)],
      ])),
      list && section('Tokens', table('Tokens of the catalogue', [
        ['Name', '', (one) => el('strong', {}, one.name)],
        ['Role', '', (one) => one.role],
        ['For', '', scope],
        ['Used last, to the hour', '', (one) => time(one.last_used_at)],
        ['Expires', '', (one) => time(one.expires_at)],
        ['Actions', 'actions', (one) => (one.managed ? badge('', 'by configuration') : button('End', () => endDialog(context, one), '', one.name))],
      ], list.tokens, 'There is none in the catalogue.'),
      further(list.next, to('access', {after: list.next}), 'More tokens')),
      none('A token is made on the machine: ', codeOf('sitemapd token add NAME --role read')),
    ],
  };
}
