// The stores: whether they answer, and what it costs to follow them.
import { h } from './dom.js'
import { healthShape } from './health.js'
import { setting } from './times.js'
import { plain, value } from './values.js'

export const stores = (sources) =>
  h('section', { class: 'panel stores', 'aria-label': 'Stores' },
    h('h2', null, sources.length === 1 ? 'Store' : 'Stores'),
    sources.map(storeLine))

// storeLine is the state of a store in one line.
export function storeLine(source) {
  const health = source.ok ? 'ok' : 'alarm'
  const count = `${source.elections.toLocaleString('en')} ${source.elections === 1 ? 'election' : 'elections'}`
  return h('p', { class: 'store', 'data-key': source.name },
    h('span', { class: `health ${health}` }, healthShape(health), source.ok ? 'Store OK' : 'Store problem'),
    h('span', { class: 'name' }, value(source.name, 80)),
    h('span', { class: 'dim' }, [count, ...reading(source)].join(' · ')),
    source.problem && h('span', { class: 'problem' }, value(source.problem, 300)),
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
