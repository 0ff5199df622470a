// The actions of the reader, if the dashboard allows them: ask a leader to hand over, and replace a
// record that stops the election. The server refuses if the state has changed since it was shown.
import { h } from './dom.js'
import { leaderOf } from './health.js'
import { plain, value } from './values.js'

const usualLease = 15_000 // ms

export class Actions {
  #outcome = null // of the last action
  #busy = false
  #view

  constructor(view) {
    this.#view = view
    view.root.addEventListener('submit', (event) => this.#submit(event))
  }

  render(data) {
    const { row, record } = data
    const form = leaderOf(row) ? handOver(data) : ['foreign', 'malformed'].includes(record.kind) && reset(row)
    if (!data.actions || !(form || this.#outcome)) return null
    return [form, h('p', { class: 'outcome', role: 'status' }, this.#outcome)]
  }

  async #submit(event) {
    event.preventDefault()
    if (this.#busy) return
    const { action } = event.target.dataset
    const fields = Object.fromEntries(new FormData(event.target))
    const { row, record } = this.#view.data
    const request = { source: row.source, name: row.name }
    if (action === 'hand-over') Object.assign(request, { to: fields.to, term: row.term })
    else Object.assign(request, { confirm: fields.confirm, lease_ms: Math.round(fields.lease * 1000), digest: record.digest })
    this.#busy = true
    this.#say(['The request is under way.'])
    await this.#view.post('api/' + action, request).then(
      () => this.#say(done(action, row, fields)),
      (error) => this.#say([h('span', { class: 'problem' }, effect(error), value(error.message, 300))]))
    this.#busy = false
  }

  #say(outcome) {
    this.#outcome = outcome
    this.#view.redraw()
  }
}

// effect says whether a failed action may have been done: the server refuses before it does
// anything.
function effect({ status }) {
  return status >= 400 && status < 500 ? 'Nothing was done: ' : 'It is not known whether this was done. Look at the record. '
}

function done(action, row, { to }) {
  if (action === 'reset') return ['The record was replaced. Candidates wait for a lease before one of them leads.']
  return [value(row.leader, 60), ' is asked to hand over to ', to ? value(to, 60) : 'any candidate', '. It finishes its work first.']
}

function handOver({ row, terms }) {
  const others = [...new Set(terms.map((term) => term.leader))].filter((name) => name !== row.leader).reverse()
  return h('form', { 'data-action': 'hand-over', 'data-key': 'hand-over' },
    h('label', null, 'Next leader ', h('input', { name: 'to', list: 'others', placeholder: 'any candidate', autocomplete: 'off', spellcheck: 'false' })),
    h('datalist', { id: 'others' }, others.map((name) => h('option', { value: name, label: plain(name, 60) }))),
    h('button', { class: 'button' }, 'Ask the leader to hand over'))
}

function reset({ lease_ms: seen }) {
  return h('form', { 'data-action': 'reset', 'data-key': 'reset' },
    h('p', null, 'A reset replaces the record below by a vacant one, so that a candidate can lead. ',
      'The bytes are lost. It is safe if no other program needs or writes them, and if no candidate has a longer lease than this.'),
    h('label', null, 'Longest lease, in seconds ',
      h('input', { name: 'lease', type: 'number', min: 0.001, max: 3600, step: 'any', value: Math.max(usualLease, seen ?? 0) / 1000, required: true })),
    h('label', null, 'Name of the election ', h('input', { name: 'confirm', required: true, autocomplete: 'off', spellcheck: 'false' })),
    h('button', { class: 'button danger' }, 'Replace the record'))
}
