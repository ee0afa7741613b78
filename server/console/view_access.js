/* Access: who one is, and for role admin the tokens and the end of one. None is made here: who could
 * make tokens by a stolen one would keep a way in. */
import {get, remove} from './api.js';
import {ago, badge, button, dialog, el, facts, link, section, table, time} from './dom.js';

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
      context.say(`The token ${one.name} is ended.`);
      context.refresh();
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
      list && section('Tokens', list.tokens.length > 0 ? table('Tokens of the catalogue', [
        {name: 'Name', cell: (one) => el('strong', {}, one.name)},
        {name: 'Role', cell: (one) => one.role},
        {name: 'For', cell: scope},
        {name: 'Used last', cell: (one) => ago(one.last_used_at)},
        {name: 'Expires', cell: (one) => time(one.expires_at)},
        {name: 'Actions', kind: 'actions', cell: (one) => (one.managed ? badge('', 'by configuration') : button('End', () => endDialog(context, one), '', one.name))},
      ], list.tokens, true) : el('p', {class: 'none'}, 'There is none in the catalogue.'),
      list.next && el('p', {}, link('#/access?' + new URLSearchParams({after: list.next}), 'More tokens'))),
      el('p', {class: 'none'}, 'A token is made on the machine: ', el('code', {}, 'sitemapd token add NAME --role read')),
    ],
  };
}
