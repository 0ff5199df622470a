// The actions of the reader, if the dashboard allows them: ask a leader to hand over, and replace a
// record that stops the election. The server refuses if the state has changed since it was shown.
import { h } from './dom.js'
import { leaderOf } from './health.js'
import { plain, value } from './values.js'

const usualLease = 15_000 // ms

export class Actions {
  #outcome = null // of the last action
  #busy = false
  #asking = null // the hand-over that the reader is to confirm
  #move = null // the hand-over that was asked for
  #view

  constructor(view) {
    this.#view = view
    view.root.addEventListener('submit', (event) => this.#submit(event))
  }

  render(data) {
    const { row, record } = data
    const form = leaderOf(row) ? this.#handOver(data) : ['foreign', 'malformed'].includes(record.kind) && reset(row)
    const outcome = this.#move ? outcomeOf(this.#move, data) : this.#outcome
    if (!data.actions || !(form || outcome)) return null
    return [form, h('p', { class: 'outcome', role: 'status' }, outcome)]
  }

  #handOver(data) {
    if (this.#asking?.term !== data.row.term) this.#asking = null // another member leads by now
    return this.#asking ? confirmation(this.#asking) : handOver(data)
  }

  async #submit(event) {
    event.preventDefault()
    if (this.#busy) return
    const { action } = event.target.dataset
    const fields = Object.fromEntries(new FormData(event.target))
    const { row, record } = this.#view.data
    if (action === 'hand-over') {
      this.#asking = { to: fields.to.trim(), force: 'force' in fields, term: row.term, leader: row.leader }
      this.#view.redraw()
      return
    }
    const request = { source: row.source, name: row.name }
    const asked = this.#asking
    this.#asking = this.#move = null
    if (event.submitter?.value === 'cancel') return this.#say(null)
    if (action === 'confirm') await this.#post('hand-over', { ...request, to: asked.to, force: asked.force, term: asked.term }, () => (this.#move = asked))
    else await this.#post('reset', { ...request, confirm: fields.confirm, lease_ms: Math.round(fields.lease * 1000), digest: record.digest }, () => null)
  }

  async #post(action, request, done) {
    this.#busy = true
    this.#say(['The request is under way.'])
    await this.#view.post('api/' + action, request).then(
      () => this.#say(done() ? null : ['The record was replaced. Candidates wait for a lease before one of them leads.']),
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

// outcomeOf says what has come of a hand-over so far.
function outcomeOf(move, { row, record }) {
  const leader = value(move.leader, 60)
  const to = move.to && value(move.to, 60)
  if (row.term > 0 && row.term !== move.term && leaderOf(row)) {
    const wanted = !move.to || row.leader === move.to
    return [value(row.leader, 60), ' leads now', wanted ? '.' : [', and not ', to, '.']]
  }
  const { request } = record
  move.offered ||= request?.offer
  move.accepted ||= request && !request.offer
  if (!leaderOf(row)) return [leader, ' has left. No candidate leads yet.']
  if (request?.offer) return ['Waiting for ', to, ' to accept. Until then ', leader, ' goes on leading.']
  if (move.offered && !move.accepted && !request) return [to, ' has not accepted, so ', leader, ' goes on leading. Check that it runs, takes part and is eligible.']
  return [leader, ' is asked to hand over to ', to || 'any candidate', '. It finishes its work first.']
}

function handOver({ row, terms }) {
  const others = [...new Set(terms.map((term) => term.leader))].filter((name) => name !== row.leader).reverse()
  return h('form', { 'data-action': 'hand-over', 'data-key': 'hand-over' },
    h('label', null, 'Next leader ', h('input', { name: 'to', list: 'others', placeholder: 'any candidate', autocomplete: 'off', spellcheck: 'false' })),
    h('datalist', { id: 'others' }, others.map((name) => h('option', { value: name, label: plain(name, 60) }))),
    h('label', { class: 'check' }, h('input', { name: 'force', type: 'checkbox' }), ' even if it does not accept'),
    h('button', { class: 'button' }, 'Hand over …'))
}

function confirmation({ to, force, leader }) {
  return h('form', { 'data-action': 'confirm', 'data-key': 'confirm' },
    h('p', null, value(leader, 60), ' finishes its work, and then ', to ? value(to, 60) : 'any candidate', ' leads.',
      to && (force ? [' If it is not there, another candidate leads.'] : [' If it does not accept, nothing changes.'])),
    h('button', { class: 'button', value: 'yes' }, `Ask ${plain(leader, 60)} to hand over`),
    h('button', { class: 'button', value: 'cancel' }, 'Cancel'))
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
