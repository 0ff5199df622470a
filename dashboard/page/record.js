// The record in the store. Any member may have written it.
import { h } from './dom.js'
import { moment } from './times.js'
import { lines, value } from './values.js'

const kinds = {
  released: 'the leader has given up the lease',
  vacant: 'no leader, and a lease to wait out',
  malformed: 'it breaks a limit: candidates wait',
  foreign: 'it is not a record of Tenure, and is never overwritten',
  absent: 'there is none',
}

export function record({ row, record: { kind, text, bytes, updated, request } }) {
  const about = kind === 'held' ? held(row) : Object.hasOwn(kinds, kind) ? kinds[kind] : ''
  return [
    h('p', null, h('b', null, value(kind, 20)), about && `: ${about}`,
      updated && [' · written ', moment(updated)]),
    metadata(text),
    request && h('p', { class: 'asked' }, 'A hand-over is asked for',
      request.by && [' by ', value(request.by, 40)], request.to ? [', to ', value(request.to, 40)] : ', to any candidate'),
    bytes > most && h('p', null, `Below is the beginning of ${bytes.toLocaleString('en')} bytes.`),
    text && h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Record' }, lines(pretty(text))),
    text && pretty(text) !== text && h('details', { class: 'as-table' }, h('summary', null, 'As stored'), h('pre', null, lines(text))),
  ]
}

// held says what a record with a leader means. It stays when the leader has died.
function held(row) {
  if (row.last_known) return 'a leader held the lease when the store last answered'
  if (!row.leader) return 'it names a leader whose lease has run out'
  return row.unconfirmed ? 'it names a leader that was not seen to renew' : 'a leader holds the lease'
}

const most = 4096 // bytes of a record that the dashboard keeps

// metadata shows what the leader says about itself as fields.
function metadata(text) {
  const fields = Object.entries(parse(text)?.metadata ?? {}).filter(([, of]) => typeof of === 'string')
  return fields.length > 0 && h('dl', { class: 'facts metadata' },
    fields.map(([name, of]) => h('div', null, h('dt', null, value(name, 40)), h('dd', null, value(of, 80)))))
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

// pretty indents JSON, and leaves all other texts as they are.
function pretty(text) {
  const read = parse(text)
  return read === null ? text : JSON.stringify(read, null, 2)
}
