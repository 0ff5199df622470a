// The part of the lease that was left at each renewal.
import { h, head, svg } from './dom.js'
import { clock, moment, percent, stamp } from './times.js'

const height = 150
const left = 40 // for the labels
const quarter = 0.25
const shown = 10

export function renewals({ renewals: all, row }, width) {
  if (all.length === 0) return h('p', { class: 'dim' }, 'No renewal was seen yet.')
  const points = all.map((r) => ({ ...r, at: Date.parse(r.at), left: Math.max(0, Math.min(1, r.left)) }))
  const worst = points.reduce((a, b) => (b.left < a.left ? b : a))
  const below = points.filter((p) => p.left < quarter).length
  const summary = `${points.length} renewals since ${stamp(points[0].at)}. ` +
    `The least left was ${percent(worst.left)}, at ${stamp(worst.at)}. ` +
    (below ? `${below} came in the last quarter of the lease.` : 'None came in the last quarter of the lease.')
  return [chart(points, row.lease_ms, width, summary), h('p', { class: 'dim small' }, summary), closest(all)]
}

function chart(points, lease, width, summary) {
  const first = points[0].at
  const span = Math.max(1000, points.at(-1).at - first)
  const x = (at) => left + 6 + ((at - first) / span) * (width - left - 12)
  const y = (part) => 8 + (1 - part) * (height - 16)
  return svg('svg', { class: 'renewals', width, height: height + 18, role: 'img', 'aria-label': summary },
    svg('rect', { class: 'danger', x: left, y: y(quarter), width: Math.max(0, width - left), height: y(0) - y(quarter) }),
    [1, 0.75, 0.5, quarter, 0].map((part) => [
      svg('line', { class: part === quarter ? 'quarter' : 'grid', x1: left, x2: width, y1: y(part), y2: y(part) }),
      svg('text', { class: 'tick', x: left - 6, y: y(part) + 4, 'text-anchor': 'end' }, percent(part))]),
    svg('path', { class: 'path', d: line(points, lease, x, y) }),
    points.map((p) => point(p, x(p.at), y(p.left))),
    svg('text', { class: 'tick', x: left, y: height + 14 }, clock(first, 8)),
    svg('text', { class: 'tick', x: width, y: height + 14, 'text-anchor': 'end' }, clock(points.at(-1).at, 8)))
}

// line connects the renewals of one leader. It is interrupted by a gap of more than a lease.
function line(points, lease, x, y) {
  return points.map((p, i) => {
    const apart = i === 0 || p.at - points[i - 1].at > lease
    return `${apart ? 'M' : 'L'}${x(p.at).toFixed(1)} ${y(p.left).toFixed(1)}`
  }).join('')
}

function point(p, x, y) {
  const title = svg('title', null, `${percent(p.left)} left at ${stamp(p.at, 12)}`)
  return p.left < quarter
    ? svg('path', { class: 'point close', d: 'M0-5 5 4-5 4Z', transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }, title)
    : svg('circle', { class: 'point', cx: x.toFixed(1), cy: y.toFixed(1), r: 2 }, title)
}

function closest(all) {
  const worst = [...all].sort((a, b) => a.left - b.left).slice(0, shown)
  return h('details', { class: 'as-table' }, h('summary', null, 'The closest renewals as a table'),
    h('table', null,
      head('At', 'Left'),
      h('tbody', null, worst.map((r) => h('tr', null, h('td', null, moment(r.at)), h('td', null, percent(r.left)))))))
}
