// The stores: whether they answer, and what it costs to follow them.
import { h } from './dom.js'
import { healthShape } from './health.js'
import { ago, moment, setting } from './times.js'
import { lines, plain, value } from './values.js'

export const stores = (sources) =>
  h('section', { class: 'panel stores', 'aria-label': 'Stores' },
    h('h2', null, sources.length === 1 ? 'Store' : 'Stores'),
    sources.map(storeLine))

// banners has one line for each store that does not answer.
export const banners = (sources) => sources.filter((s) => s.away).map((source) =>
  h('div', { class: 'panel wide away', 'data-key': `away ${source.name}`, role: 'alert' },
    h('p', null, h('b', null, 'A store is away: '), value(source.name, 80), ': ', value(source.problem, 160),
      ', since ', moment(source.away, 8), '. The elections below are as last seen.'),
    whole(source.detail)))

// whole is the whole error, for a reader who asks for it.
export const whole = (detail) => detail && h('details', { class: 'as-table' },
  h('summary', null, 'The whole error'), h('pre', null, lines(detail)))

// storeLine is the state of a store in one line.
export function storeLine(source) {
  const health = source.ok ? 'ok' : 'alarm'
  const count = `${source.elections.toLocaleString('en')} ${source.elections === 1 ? 'election' : 'elections'}`
  const words = source.away ? 'Store away' : source.ok ? 'Store OK' : 'Store problem'
  return h('div', { class: 'store', 'data-key': source.name },
    h('span', { class: `health ${health}` }, healthShape(health), words),
    h('span', { class: 'name' }, value(source.name, 80)),
    h('span', { class: 'dim' }, [count, ...reading(source)].join(' · '),
      source.listed && [' · listed ', ago(source.listed), ' ago']),
    source.problem && !source.away && h('span', { class: 'problem' }, value(source.problem, 300), whole(source.detail)),
    source.silent.map((why) => h('span', { class: 'problem' }, 'No report from ', value(why, 200))))
}

// reading says how the dashboard follows a store, and what that costs.
function reading(source) {
  if (source.pushed) return ['the store pushes changes']
  if (!source.interval_ms) return []
  return [
    `polled each ${setting(source.interval_ms)}`,
    `${Math.round(source.requests_per_minute).toLocaleString('en')} requests a minute`,
    source.cost_per_month && `${cost(source.cost_per_month)} a month`,
  ].filter(Boolean)
}

// cost is in dollars, or a text.
function cost(amount) {
  if (typeof amount !== 'number') return plain(amount, 40)
  return `about $${amount < 10 ? amount.toFixed(2) : Math.round(amount)}`
}
