// The time left of the lease. An observer knows only a range: the leader counts from before it sent
// its renewal, and the observer from when it saw the renewal.
import { h, svg, update } from './dom.js'
import { age, now, setting, stamp } from './times.js'

const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)')

let drawn = 0

export const timeLeft = (data) =>
  h('section', { class: 'panel wide lease', 'aria-label': 'Time left of the lease', id: 'time-left' }, parts(data))

// updateTimeLeft redraws the time left, at most once a second if the reader prefers less motion.
export function updateTimeLeft(data) {
  const at = Date.now()
  if (reducedMotion.matches && at - drawn < 1000) return
  drawn = at
  update(document.getElementById('time-left'), parts(data))
}

function parts(data) {
  if (!data.left) return [h('p', null, h('b', null, 'Time left: '), data.row.last_known ? 'not known, since the store does not answer' : 'no lease is held')]
  const whole = data.row.lease_ms
  const passed = now() - data.leftAt
  const least = Math.max(0, data.left.least_ms - passed)
  const most = Math.max(0, Math.min(whole, data.left.most_ms - passed))
  return [
    h('p', null, h('b', null, 'Time left: '), h('span', { class: 'range' }, range(least, most)),
      ` of ${whole / 1000} s`, next(data)),
    bar(least / whole, most / whole),
    h('p', { class: 'dim small' }, 'Seen from outside. Only the leader knows the exact time.'),
  ]
}

const seconds = (ms) => (ms / 1000).toFixed(1)

function range(least, most) {
  if (most <= 0) return 'none'
  return seconds(least) === seconds(most) ? `${seconds(most)} s` : `${seconds(least)} to ${seconds(most)} s`
}

function next({ next_renewal: at, pushed, sources: [source] }) {
  if (!pushed && source?.interval_ms) return h('span', { class: 'next' }, `the store is polled each ${setting(source.interval_ms)}`)
  if (!at) return null
  const wait = Date.parse(at) - now()
  const late = wait > -60000 ? `${seconds(-wait)} s` : age(-wait)
  const text = wait >= 0 ? `next renewal in ${seconds(wait)} s` : `renewal late by ${late}`
  return h('span', { class: wait < -1000 ? 'next late' : 'next', title: stamp(at) }, text)
}

function bar(least, most) {
  const part = (x) => `${(Math.min(1, x) * 100).toFixed(2)}%`
  return svg('svg', { class: 'bar', width: '100%', height: 12, 'aria-hidden': 'true' },
    svg('rect', { class: 'ground', width: '100%', height: 12, rx: 2 }),
    svg('rect', { class: 'most', width: part(most), height: 12, rx: 2 }),
    svg('rect', { class: least < 0.25 ? 'least close' : 'least', width: part(least), height: 12, rx: 2 }),
    svg('line', { class: 'quarter', x1: '25%', x2: '25%', y2: 12 }))
}
