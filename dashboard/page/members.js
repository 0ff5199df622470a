// The candidates of an election, as far as they can be known. Only a candidate itself knows these
// facts, and says them when it is asked; a former leader is known by its terms.
import { h, head } from './dom.js'
import { ago } from './times.js'
import { value } from './values.js'

const mostFormer = 5

const known = { answered: 'answered', reported: 'reported by URL', led: 'has led before' }

export function members({ members, presence, terms }) {
  const all = [...members, ...former(members, terms)]
  return [
    all.length > 0 && h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Candidates' },
      h('table', null,
        head('Candidate', 'State', 'May lead', ['Priority', 'number'], ['Last contact', 'number', 'with the store, by its own clock'], 'Known', 'Problem'),
        h('tbody', null, all.map(row)))),
    h('p', { class: 'legend' }, legend(presence)),
    presence.problem && h('p', { class: 'problem' }, 'The candidates cannot be asked: ', value(presence.problem, 200)),
  ]
}

function legend({ asked, reports }) {
  if (asked) return 'As each candidate says of itself when it is asked over the store. One that did not answer may exist all the same.'
  if (reports) return 'As each process reports of itself. Others may take part.'
  return 'Candidates cannot be asked over this store: only leaders are known. Give the URLs of the processes with --member.'
}

// former returns the leaders of the past that have neither answered nor reported, the last one first.
function former(members, terms) {
  const ids = new Set(members.map((m) => m.id))
  const all = []
  for (const t of terms.toSorted((a, b) => b.from.localeCompare(a.from))) {
    if (ids.has(t.leader) || all.length === mostFormer) continue
    ids.add(t.leader)
    all.push({ id: t.leader, known: t.to ? 'led' : 'leads', led: t.to })
  }
  return all
}

function row(member) {
  const self = member.state !== undefined
  return h('tr', { 'data-key': `${member.id} ${member.incarnation ?? ''} ${member.from ?? ''}` },
    h('th', { scope: 'row', title: member.from || member.address }, value(member.id, 40)),
    h('td', null, self ? value(member.state, 20) : 'not known'),
    h('td', null, self && (member.eligible ? 'yes' : 'no')),
    h('td', { class: 'number' }, self && member.priority),
    h('td', { class: 'number' }, self && (member.last_contact ? ago(member.last_contact) : 'none')),
    h('td', null, known[member.known] ?? 'leads', member.led && [' (until ', ago(member.led), ' ago)']),
    h('td', { class: 'problem' }, member.no_report && ['No report for ', ago(member.at), ': ', value(member.no_report, 80), ' '],
      member.problem && value(member.problem, 120)))
}
