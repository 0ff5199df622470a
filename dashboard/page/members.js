// The reports of the members. Only a member itself knows these facts.
import { h, head } from './dom.js'
import { ago } from './times.js'
import { value } from './values.js'

export function members(all) {
  return [
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Members' },
      h('table', null,
        head('Member', 'State', 'May lead', ['Priority', 'number'], ['Last contact', 'number', 'with the store, by its own clock'], 'Problem'),
        h('tbody', null, all.map(row)))),
    h('p', { class: 'legend' }, 'As each member reports of itself.'),
  ]
}

function row(member) {
  const contact = member.last_contact
  return h('tr', { 'data-key': `${member.id} ${member.from}` },
    h('th', { scope: 'row', title: member.from }, value(member.id, 40)),
    h('td', null, value(member.state, 20)),
    h('td', null, member.eligible ? 'yes' : 'no'),
    h('td', { class: 'number' }, member.priority),
    h('td', { class: 'number' }, contact ? ago(contact) : 'none'),
    h('td', { class: 'problem' }, member.no_report && ['No report for ', ago(member.at), ': ', value(member.no_report, 80), ' '],
      member.problem && value(member.problem, 120)))
}
