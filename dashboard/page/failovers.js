// Each change of leader, compared with the shortest time that it could take.
import { h, head, svg } from './dom.js'
import { endBadge } from './health.js'
import { duration, moment } from './times.js'
import { value } from './values.js'

const shown = 12

export function failovers(terms) {
  const all = terms.flatMap((term, i) => (terms[i + 1] && typeof term.took_ms === 'number' ? [{ term, next: terms[i + 1] }] : []))
  if (all.length === 0) return h('p', { class: 'dim' }, 'No change of leader was seen yet.')
  const newest = all.slice(-shown).reverse()
  const longest = Math.max(1, ...newest.map(({ term }) => Math.max(term.took_ms, term.least_ms ?? 0)))
  return [
    h('table', { class: 'failovers' },
      head('At', 'From and to', 'End', ['Took', 'number'], ['Least', 'number'], 'Beside the least'),
      h('tbody', null, newest.map((change) => row(change, longest)))),
    h('p', { class: 'legend' },
      h('span', null, sample('possible'), 'the least that it could take'),
      h('span', null, sample('beyond'), 'beyond that'),
      all.length > shown && h('span', null, `the last ${shown} of ${all.length}`)),
  ]
}

function row({ term, next }, longest) {
  const least = typeof term.least_ms === 'number' ? term.least_ms : null
  return h('tr', { 'data-key': `${next.term} ${next.from}` },
    h('td', null, moment(next.from, 8)),
    h('th', { scope: 'row' }, value(term.leader, 40), ' → ', value(next.leader, 40)),
    h('td', { class: 'how' }, endBadge(term.ended)),
    h('td', { class: 'number took' }, duration(term.took_ms)),
    h('td', { class: 'number dim least-time' }, least === null ? '–' : duration(least)),
    h('td', { class: 'comparison' }, comparison(term.took_ms, least ?? 0, longest)))
}

function comparison(took, least, longest) {
  const part = (ms) => `${((Math.max(0, ms) / longest) * 100).toFixed(2)}%`
  return svg('svg', { width: '100%', height: 10, 'aria-hidden': 'true' },
    svg('rect', { class: 'possible', width: part(Math.min(least, took)), height: 10 }),
    svg('rect', { class: 'beyond', x: part(Math.min(least, took)), width: part(took - least), height: 10 }),
    took - least > 0 && svg('rect', { class: 'beyond', x: part(Math.min(least, took)), width: 2, height: 10 }))
}

const sample = (kind) => svg('svg', { class: 'shape', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
  svg('rect', { class: kind, y: 1, width: 12, height: 10 }))
