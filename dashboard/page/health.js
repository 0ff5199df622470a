// The health of an election, and how a term ended: each as a word, a shape and a color.
import { h, svg } from './dom.js'
import { value } from './values.js'

// healths are in the order of the server's rows, the worst first.
export const healths = {
  vacant: { word: 'No leader', about: 'no candidate holds the lease' },
  alarm: { word: 'Alarm', about: 'an operator should look' },
  flapping: { word: 'Flapping', about: 'more than 5 changes of leader in 15 minutes that were not asked for' },
  tight: { word: 'Near deadline', about: 'a renewal came in the last quarter of the lease' },
  unknown: { word: 'Not confirmed', about: 'the store does not answer, or no renewal of the leader was seen' },
  starting: { word: 'Starting', about: 'candidates wait for one lease before the first of them leads' },
  ok: { word: 'OK', about: 'a leader renews in time' },
}

const shapes = {
  vacant: ['circle', { cx: 6, cy: 6, r: 4.5, class: 'line' }],
  alarm: ['path', { d: 'M6 1 11.5 11H.5Z' }],
  flapping: ['path', { d: 'M1 4h8L6.5 1.5M11 8H3l2.5 2.5', class: 'line' }],
  tight: ['path', { d: 'M6 6V1a5 5 0 0 1 5 5ZM11 6A5 5 0 1 1 6 1', class: 'line' }],
  unknown: ['circle', { cx: 6, cy: 6, r: 4.5, class: 'line dots' }],
  starting: ['path', { d: 'M3 2h6L3 10h6Z', class: 'line' }],
  ok: ['circle', { cx: 6, cy: 6, r: 5 }],
}

const known = (health) => (Object.hasOwn(healths, health) ? health : 'unknown')

export function healthShape(health) {
  const [tag, attributes] = shapes[known(health)]
  return svg('svg', { class: 'shape', viewBox: '0 0 12 12', 'aria-hidden': 'true' }, svg(tag, attributes))
}

// badge is the health as a shape and a word.
export const badge = (health) =>
  h('span', { class: `health ${known(health)}`, title: healths[known(health)].about },
    healthShape(health), healths[known(health)].word)

// leaderOf returns the present leader, or null. A row without a leader may name the last one, which
// is only the last known one if the store does not answer.
export const leaderOf = (row) => (row.health !== 'vacant' && !row.last_known && row.leader) || null

// badges are the health, and the alarm of an election without a leader.
export const badges = (row) => [badge(row.health), row.alarm && row.health === 'vacant' && badge('alarm')]

// leaderText is the leader, and how far that is known. Titled: the text has the title 'last known'.
export const leaderText = (row, most, titled = false) => row.leader
  ? [value(row.leader, most), row.last_known ? !titled && mark('last known') : row.unconfirmed && mark('not confirmed')]
  : row.last_known && !titled ? mark('none, as last known') : h('span', { class: 'dim' }, 'none')

const mark = (text) => h('span', { class: 'under' }, ` ${text}`)

// endings are the ways in which a term ends.
export const endings = {
  released: { word: 'released', about: 'the leader gave the lease back', path: 'M-4-4.5 4 0-4 4.5Z' },
  silence: { word: 'silence', about: 'the leader did not renew: it died, was stopped, or was cut off', path: 'M-4-4 4 4M4-4-4 4' },
  deleted: { word: 'deleted', about: 'the record was deleted', path: 'M0-5 5 0 0 5-5 0Z' },
  unknown: { word: 'unknown', about: 'how it ended is not known', path: 'M-3.5-3.5h7v7h-7Z' },
}

export const ending = (name) => endings[Object.hasOwn(endings, name) ? name : 'unknown']

// endMark is the shape of an ending, around the given point.
export const endMark = (name, x = 6, y = 6) =>
  svg('path', { class: `end ${ending(name).word}`, d: ending(name).path, transform: `translate(${x} ${y})` })

// endBadge is an ending as a shape and a word.
export const endBadge = (name) =>
  h('span', { class: 'ending', title: ending(name).about },
    svg('svg', { class: 'shape', viewBox: '0 0 12 12', 'aria-hidden': 'true' }, endMark(name)), ending(name).word)
