// The timeline: a lane for each leader, the times without a leader, and how each term ended.
import { h, svg } from './dom.js'
import { endBadge, ending, endings, endMark } from './health.js'
import { clock, day, duration, now, stamp, zoneShift } from './times.js'
import { Range, rangeOf } from './range.js'
import { between, termTable } from './terms.js'
import { plain, value } from './values.js'

const minute = 60000
const zooms = { '15m': ['15 min', 15 * minute], '1h': ['1 h', 60 * minute], '6h': ['6 h', 360 * minute], all: ['All', 0] }
const mostLanes = 12
const steps = [5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800].map((s) => s * 1000)

export class Timeline {
  zoom = ''
  #root
  #redraw
  #range
  #chosen = null // the key of the chosen part
  #parts = []
  #drawn = 0
  #step = 1000 // the time that one pixel shows

  constructor(root, redraw) {
    this.#root = root
    this.#redraw = redraw
    this.#range = new Range(root, redraw) // before the keys below
    const choose = (event) => this.#choose(event.target.closest?.('[data-part]')?.dataset.part)
    root.addEventListener('focusin', choose)
    root.addEventListener('pointerover', choose)
    root.addEventListener('keydown', (event) => this.#key(event))
  }

  // moved reports whether time has moved the timeline by a pixel.
  moved() {
    return Date.now() - this.#drawn > Math.max(1000, this.#step)
  }

  #choose(key) {
    if (!key || key === this.#chosen) return
    this.#chosen = key
    this.#redraw()
  }

  // Arrow keys move from one part to the next.
  #key(event) {
    const at = this.#parts.findIndex((p) => p.key === event.target.dataset?.part)
    if (at < 0) return
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.#parts.length - 1 }[event.key]
    if (this.#parts[to] === undefined) return
    event.preventDefault()
    this.#choose(this.#parts[to].key)
    this.#root.querySelector(`[data-part="${this.#parts[to].key}"]`)?.focus()
  }

  render({ terms, unseen, outages }, width) {
    this.#drawn = Date.now()
    if (terms.length === 0) return [h('p', { class: 'dim' }, 'No leader was seen yet.')]
    const all = partsOf(terms, unseen)
    const range = rangeOf(this.zoom)
    const end = range ? range.end : now()
    const usual = end - all[0].from < 15 * minute ? '15m' : '1h'
    const zoom = range ? null : Object.hasOwn(zooms, this.zoom) ? this.zoom : usual
    const links = h('nav', { class: 'zoom', 'aria-label': 'Time shown' }, Object.entries(zooms).map(([key, [word]]) =>
      h('a', { href: `${location.hash.split('?')[0]}?zoom=${key}`, 'aria-current': key === zoom ? 'true' : null }, word)))
    const span = range ? range.end - range.start : zooms[zoom][1] || Math.max(minute, end - all[0].from)
    const view = { start: end - span, end, width }
    this.#step = span / Math.max(1, width)
    this.#parts = all.filter((p) => p.to >= view.start && p.from <= view.end && (p.term || p.unseen || p.after.tardy || p.to - p.from >= this.#step))
    const chosen = this.#parts.find((p) => p.key === this.#chosen)
    const shown = chosen ?? this.#parts.at(-1)
    this.#range.view = { ...view, left: leftOf(width) }
    const image = picture(this.#parts, all, { ...view, drag: this.#range.drag, outages, chosen: chosen?.key, shown: shown?.key })
    return [links, image, h('p', { class: 'dim small' }, range ? `${stamp(range.start)} to ${stamp(range.end)}. ` : '',
      'Drag to choose a time, or use the keys + and −, and Shift with the arrows.'), details(shown), legend(this.#parts, outages), termTable(terms, unseen)]
  }
}

// partsOf returns the terms and the periods between them, oldest first.
function partsOf(terms, unseen) {
  const all = []
  terms.forEach((term, i) => {
    const from = Date.parse(term.from)
    const to = term.to ? Date.parse(term.to) : now()
    all.push({ key: `t${term.term}-${term.from}`, term, from, to, next: terms[i + 1] })
    const next = terms[i + 1] ? Date.parse(terms[i + 1].from) : now()
    if (term.to && next > to) all.push(...between(to, next, unseen).map((gap, n) => ({ key: `g${n}-${term.term}-${term.from}`, after: term, ...gap })))
  })
  return all
}

// --- The picture

const leftOf = (width) => (width < 560 ? 0 : 150) // for the names

function picture(parts, all, view) {
  const narrow = view.width < 560
  const shape = { ...view, narrow, left: leftOf(view.width), row: narrow ? 36 : 26, bar: 14 }
  const names = lanesOf(parts, all)
  const height = Math.max(1, names.length) * shape.row + 4
  const x = (at) => shape.left + ((Math.min(view.end, Math.max(at, view.start)) - view.start) / (view.end - view.start)) * (view.width - shape.left - 6)
  const ends = new Map() // the position of the last mark in each lane
  return svg('svg', { class: 'timeline', width: view.width, height: height + 22, role: 'group', tabindex: 0,
    'aria-label': 'Timeline: arrow keys walk from one term to the next, plus and minus change the scale, Shift and arrows move' },
  axis(shape, x, height), view.outages.map((o) => outageShape(o, x, view, height)), before(all, x, shape, height),
  parts.filter((p) => !p.term).map((gap) => gapShape(gap, x, shape, height)),
  names.map((name, lane) => laneShape(name, lane, shape)),
  parts.filter((p) => p.term).map((part) => termShape(part, names, x, shape, ends)),
  view.drag && svg('rect', { class: 'drag', x: x(Math.min(view.drag.from, view.drag.to)), y: 0, height,
    width: Math.abs(x(view.drag.to) - x(view.drag.from)) }))
}

const others = Symbol('others')

// lanesOf returns the leaders in the order of their first terms. If there are more than mostLanes,
// the earliest leaders share one lane.
function lanesOf(parts, all) {
  const recent = new Set(parts.filter((p) => p.term).map((p) => p.term.leader).reverse())
  const kept = new Set([...recent].slice(0, recent.size > mostLanes ? mostLanes - 1 : mostLanes))
  const names = [...new Set(all.filter((p) => p.term).map((p) => p.term.leader))].filter((name) => kept.has(name))
  return recent.size > kept.size ? [others, ...names] : names
}

const laneOf = (names, leader) => Math.max(0, names.indexOf(leader))

function laneShape(name, lane, { left, row, narrow, width }) {
  const y = 4 + lane * row
  const text = name === others ? 'earlier leaders' : plain(name, narrow ? 40 : 19)
  return [
    svg('line', { class: 'lane', x1: 0, x2: width, y1: y + row - 2, y2: y + row - 2 }),
    svg('text', { class: 'name', x: 0, y: narrow ? y + 10 : y + 15 }, text, svg('title', null, name === others ? text : plain(name))),
  ]
}

function termShape(part, names, x, view, ends) {
  const { row, bar, narrow } = view
  const lane = laneOf(names, part.term.leader)
  const y = 4 + lane * row + (narrow ? 14 : 4)
  const from = x(part.from)
  const to = Math.max(from + 2, x(part.to))
  const marked = part.term.to && to - (ends.get(lane) ?? -9) > 8 // overlapping marks cannot be distinguished
  if (marked) ends.set(lane, to)
  return svg('g', focusable(part, view, part.term.to ? 'term' : 'term current'),
    svg('rect', { class: 'reach', x: Math.min(from, to - 12), y: y - 3, width: Math.max(12, to - from), height: bar + 6 }),
    svg('rect', { class: 'led', x: from, y, width: to - from, height: bar, rx: Math.min(2, (to - from) / 2) }),
    expiring(part, x, y, bar),
    marked && endMark(part.term.ended, to, y + bar / 2))
}

// outageShape is the time in which the store did not answer.
function outageShape({ from, to, reason }, x, view, height) {
  const end = to ? Date.parse(to) : view.end
  if (end < view.start) return null
  const left = x(Date.parse(from))
  return svg('rect', { class: 'outage', x: left, y: 0, width: Math.max(2, x(end) - left), height },
    svg('title', null, `store away since ${stamp(from)}: ${plain(reason)}`))
}

// expiring is the part of a term after its last renewal, in which the lease ran out.
function expiring({ term, to }, x, y, height) {
  if (!term.renewed) return null
  const from = x(Date.parse(term.renewed))
  return svg('rect', { class: 'expiring', x: from, y, width: Math.max(0, x(to) - from), height })
}

function gapShape(gap, x, view, height) {
  const from = x(gap.from)
  const width = Math.max(1, x(gap.to) - from)
  return svg('g', focusable(gap, view, 'gap'),
    svg('rect', { class: 'reach', x: from - 3, y: 0, width: width + 6, height }),
    gap.unseen ? svg('rect', { class: 'before', x: from, y: 0, width, height })
      : svg('rect', { class: width < 5 ? 'gone thin' : 'gone', x: from, y: 0, width, height, fill: 'url(#no-leader)' }))
}

// focusable: the Tab key reaches the part whose details are shown, and arrow keys reach the others.
const focusable = ({ key, ...part }, { chosen, shown }, kind) => ({
  class: `part ${kind} ${key === chosen ? 'chosen' : ''}`, 'data-key': key, 'data-part': key,
  tabindex: key === shown ? 0 : -1, role: 'img', 'aria-label': sentence(part),
})

// before is the area for the time before the dashboard saw the election.
function before(all, x, { left, start }, height) {
  const width = x(all[0].from) - left
  if (all[0].from <= start || width < 1) return null
  return [svg('rect', { class: 'before', x: left, y: 0, width, height }),
    width > 110 && svg('text', { class: 'tick', x: left + width / 2, y: 14, 'text-anchor': 'middle' }, 'not seen')]
}

function axis({ start, end, width, left }, x, height) {
  const most = Math.max(5, (width - left) / 90)
  const step = steps.find((s) => (end - start) / s <= most) ?? steps.at(-1)
  const ticks = []
  const shift = zoneShift(end)
  for (let at = Math.ceil((start + shift) / step) * step - shift; at < end; at += step) ticks.push(at)
  return ticks.map((at) => {
    const midnight = (at + shift) % 86400000 === 0
    const text = midnight && end - start > 86400000 / 2 ? day(at).slice(5) : clock(at, step < minute ? 8 : 5)
    return [svg('line', { class: 'grid', x1: x(at), x2: x(at), y1: 0, y2: height }),
      x(at) - left > 14 && width - x(at) > 14 && svg('text', { class: 'tick', x: x(at), y: height + 16, 'text-anchor': 'middle' }, text)]
  })
}

// --- The words

function period(part) {
  const to = part.term && !part.term.to ? 'now' : stamp(part.to)
  return `${stamp(part.from)} to ${to}, ${part.term?.at_least ? 'at least ' : ''}${duration(part.to - part.from)}`
}

function sentence(part) {
  if (!part.term) return `${part.unseen ? 'not seen' : 'no leader'}, ${period(part)}`
  const end = part.term.to ? `, ended: ${ending(part.term.ended).about}${lastRenewal(part.term)}` : ', leads now'
  return `${plain(part.term.leader, 80)}, term ${part.term.term}, ${period(part)}${end}`
}

const lastRenewal = ({ renewed }) => (renewed ? `, last renewed at ${stamp(renewed, 12)}` : '')

function details(part) {
  if (!part) return null
  if (!part.term) {
    return h('p', { class: 'details' }, h('b', null, part.unseen ? 'Not seen by the dashboard' : 'No leader'),
      ` ${period(part)}, after `, value(part.after.leader))
  }
  const { term, next } = part
  return h('p', { class: 'details' }, h('b', null, value(term.leader)), ` term ${term.term} · ${period(part)}`,
    term.to && [' · ', endBadge(term.ended), `: ${ending(term.ended).about}${lastRenewal(term)}`],
    next && typeof term.took_ms === 'number' && ` · next leader after ${term.took_at_least ? 'at least ' : ''}${duration(term.took_ms)}`,
    term.down_ms > 0 && `, downtime ${duration(term.down_ms)}`)
}

function legend(parts, outages) {
  const used = Object.keys(endings).filter((name) => parts.some((p) => p.term?.to && ending(p.term.ended) === endings[name]))
  return h('p', { class: 'legend' },
    h('span', null, sample('led'), 'leads'),
    parts.some((p) => p.term?.renewed) && h('span', null, runsOut(), 'lease runs out'),
    used.map((name) => h('span', { title: endings[name].about }, endBadge(name))),
    parts.some((p) => !p.term && !p.unseen) && h('span', null, sample('', 'url(#no-leader)'), 'no leader'),
    parts.some((p) => p.unseen) && h('span', null, sample('before'), 'not seen'),
    outages.length > 0 && h('span', null, sample('outage'), 'store away'))
}

const runsOut = () => svg('svg', { class: 'shape', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
  ['led', 'expiring'].map((kind) => svg('rect', { class: kind, y: 1, width: 12, height: 10, rx: 2 })))

const sample = (kind, fill = null) => svg('svg', { class: 'shape', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
  svg('rect', { class: kind, fill, y: 1, width: 12, height: 10, rx: 2 }))
