// Each change of leader, compared with the shortest time that it could take.
import { h, head, svg } from './dom.js'
import { endBadge } from './health.js'
import { duration, moment } from './times.js'
import { value } from './values.js'

const shown = 12

export function failovers({ terms, outages }) {
  const changes = terms.flatMap((term, i) => (terms[i + 1] && typeof term.took_ms === 'number' ? [{ at: terms[i + 1].from, term, next: terms[i + 1] }] : []))
  const all = [...changes, ...outages.map((outage) => ({ at: outage.from, outage }))].sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
  if (all.length === 0) return h('p', { class: 'dim' }, 'No change of leader was seen yet.')
  const newest = all.slice(0, shown)
  const longest = Math.max(1000, ...newest.map(({ term }) => (term ? Math.max(term.took_ms, term.least_ms ?? 0) : 0)))
  return [
    h('table', { class: 'failovers' },
      head('At', 'From and to', 'End', ['Took', 'number'], ['Least', 'number'], ['Downtime', 'number'], 'Beside the least'),
      h('tbody', null, newest.map((one) => (one.outage ? outageRow(one.outage) : row(one, longest))))),
    changes.length > 0 && h('p', { class: 'legend' },
      h('span', null, sample('possible'), 'the least that it could take'),
      h('span', null, sample('usual'), 'beyond that, as usual'),
      h('span', null, sample('beyond'), 'longer than it should be'),
      all.length > shown && h('span', null, `the last ${shown} of ${all.length}`)),
  ]
}

function row({ term, next }, longest) {
  const least = typeof term.least_ms === 'number' ? term.least_ms : null
  return h('tr', { 'data-key': `${next.term} ${next.from}` },
    h('td', null, moment(next.from, 8)),
    h('th', { scope: 'row' }, value(term.leader, 40), ' → ', value(next.leader, 40)),
    h('td', { class: 'how' }, endBadge(term.ended), term.asked && term.ended === 'released' && ', asked for'),
    h('td', { class: `number took ${term.tardy ? 'tardy' : ''}` }, term.took_at_least && 'at least ', duration(term.took_ms)),
    h('td', { class: 'number dim least-time' }, least === null ? '–' : duration(least)),
    h('td', { class: 'number down-time' }, term.down_ms > 0 ? duration(term.down_ms) : '–'),
    h('td', { class: 'comparison' }, comparison(term, least ?? 0, longest)))
}

const outageRow = ({ from, to, reason }) => h('tr', { class: 'outage', 'data-key': `outage ${from}` },
  h('td', null, moment(from, 8)),
  h('th', { scope: 'row', colspan: 2 }, 'Store away: ', value(reason, 80)),
  h('td', { class: 'number took' }, to ? duration(Date.parse(to) - Date.parse(from)) : 'goes on'),
  h('td', { colspan: 3, class: 'dim' }, 'Leaders may have gone on leading.'))

function comparison({ took_ms: took, tardy }, least, longest) {
  const part = (ms) => `${((Math.max(0, ms) / longest) * 100).toFixed(2)}%`
  const kind = tardy ? 'beyond' : 'usual'
  return svg('svg', { width: '100%', height: 10, 'aria-hidden': 'true' },
    svg('rect', { class: 'possible', width: part(Math.min(least, took)), height: 10 }),
    svg('rect', { class: kind, x: part(Math.min(least, took)), width: part(took - least), height: 10 }),
    took - least > 0 && svg('rect', { class: kind, x: part(Math.min(least, took)), width: 2, height: 10 }))
}

const sample = (kind) => svg('svg', { class: 'shape', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
  svg('rect', { class: kind, y: 1, width: 12, height: 10 }))
