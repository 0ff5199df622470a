// The record in the store. Any member may have written it.
import { h } from './dom.js'
import { moment } from './times.js'
import { lines, value } from './values.js'

const kinds = {
  held: 'a leader holds the lease',
  released: 'the leader has given up the lease',
  vacant: 'no leader, and a lease to wait out',
  malformed: 'it breaks a limit: candidates wait',
  foreign: 'it is not a record of Tenure, and is never overwritten',
  absent: 'there is none',
}

export function record({ kind, text, bytes, updated, request }) {
  const about = Object.hasOwn(kinds, kind) ? kinds[kind] : ''
  return [
    h('p', null, h('b', null, value(kind, 20)), about && `: ${about}`,
      updated && [' · written ', moment(updated)]),
    request && h('p', { class: 'asked' }, 'A hand-over is asked for',
      request.by && [' by ', value(request.by, 40)], request.to ? [', to ', value(request.to, 40)] : ', to any candidate'),
    bytes > most && h('p', null, `Below is the beginning of ${bytes.toLocaleString('en')} bytes.`),
    text && h('pre', { tabindex: 0, role: 'region', 'aria-label': 'Record' }, lines(pretty(text))),
    text && pretty(text) !== text && h('details', { class: 'as-table' }, h('summary', null, 'As stored'), h('pre', null, lines(text))),
  ]
}

const most = 4096 // bytes of a record that the dashboard keeps

// pretty indents JSON, and leaves all other texts as they are.
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
