// The timeline as a table, for screen readers.
import { h, head } from './dom.js'
import { endBadge } from './health.js'
import { age, duration, moment, now } from './times.js'
import { value } from './values.js'

// between returns the periods between two terms: without a leader, or not seen by the dashboard.
export function between(from, end, unseen) {
  const all = []
  for (const gap of unseen) {
    const start = Math.max(from, Date.parse(gap.from))
    const to = Math.min(end, Date.parse(gap.to))
    if (to <= start) continue
    if (start > from) all.push({ from, to: start })
    all.push({ from: start, to, unseen: true })
    from = to
  }
  return end > from ? [...all, { from, to: end }] : all
}

export function termTable(terms, unseen) {
  return h('details', { class: 'as-table' }, h('summary', null, `The timeline as a table (${terms.length})`),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Terms' },
      h('table', null,
        head('Leader', 'Term', 'From', 'To', 'Led for', 'End', 'No leader for'),
        h('tbody', null, terms.map((term, i) => termRow(term, terms[i + 1], unseen)).reverse()))))
}

function termRow(term, next, unseen) {
  const gaps = term.to ? between(Date.parse(term.to), next ? Date.parse(next.from) : now(), unseen) : []
  const gap = gaps.reduce((sum, g) => sum + (g.unseen ? 0 : g.to - g.from), 0)
  return h('tr', { 'data-key': `${term.term} ${term.from}` },
    h('th', { scope: 'row' }, value(term.leader, 40)), h('td', { class: 'mono' }, term.term),
    h('td', null, moment(term.from, 8)), h('td', null, term.to ? moment(term.to, 8) : 'now'),
    h('td', null, term.at_least && 'at least ', age((term.to ? Date.parse(term.to) : now()) - Date.parse(term.from))),
    h('td', null, term.to ? endBadge(term.ended) : ''), h('td', null, gap > 0 ? duration(gap) : ''))
}
