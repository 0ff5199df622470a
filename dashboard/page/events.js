// The events of an election, newest first.
import { h, head } from './dom.js'
import { whole } from './stores.js'
import { moment } from './times.js'
import { plain, value } from './values.js'

const words = {
  elected: 'Elected', named: 'Found', vacant: 'No leader', released: 'Released', asked: 'Hand-over asked',
  alarm: 'Alarm', trouble: 'Store trouble', store: 'Store away',
}

export function eventList(events) {
  if (events.length === 0) return h('p', { class: 'dim' }, 'No event was seen yet.')
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Events, newest first' },
    h('table', { class: 'events' },
      head('At', 'Event', 'Leader', 'Text'),
      h('tbody', null, events.map(row))))
}

function row({ id, at, what, leader, term, text, detail }) {
  const word = Object.hasOwn(words, what) ? words[what] : plain(what, 20)
  return h('tr', { 'data-key': `${id} ${at}` },
    h('td', { class: 'mono' }, moment(at)),
    h('td', { class: `what ${Object.hasOwn(words, what) ? what : ''}` }, word),
    h('td', null, leader && value(leader, 40), term > 0 && h('span', { class: 'dim mono' }, ` ${term}`)),
    h('td', { class: 'text' }, text && value(text, 300), whole(detail)))
}
