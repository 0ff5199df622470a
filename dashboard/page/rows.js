// The table of elections.
import { h, head, svg } from './dom.js'
import { badge, leaderOf } from './health.js'
import { ago, percent, setting } from './times.js'
import { plain, short, value } from './values.js'

const electionPath = (row) => `#/e/${encodeURIComponent(row.source)}/${encodeURIComponent(row.name)}`

// table makes the table. If there are several stores, it names that of each election.
export function table(elections, several) {
  return h('table', { class: 'elections' },
    h('caption', { class: 'unseen' }, 'Elections, the worst first'),
    head('Health', 'Election', 'Leader', ['Term', 'number'],
      ['Since', 'number', 'when the leader, or that there is none, was first seen'],
      ['Lease', 'number'], ['Changes/h', 'number', 'changes of leader in the last hour'],
      ['Least left', '', 'smallest part of the lease left at a renewal in the last ten minutes']),
    h('tbody', null, elections.map((row) => electionRow(row, several))))
}

function electionRow(row, several) {
  const leads = leaderOf(row)
  return h('tr', { 'data-key': electionPath(row), class: `row ${row.health}` },
    h('td', { class: 'state' }, badge(row.health)),
    h('th', { scope: 'row' },
      h('div', { class: 'line' },
        h('a', { href: electionPath(row), title: [...row.name].length > 64 ? plain(row.name) : null }, short(row.name, 64)),
        several && h('span', { class: 'under' }, short(row.source, 60))),
      row.problem && h('div', { class: 'under problem' }, value(row.problem, 160))),
    cell('Leader', '', leads && h('div', { class: 'line' },
      value(row.leader, 40), row.address && h('span', { class: 'under' }, short(row.address, 40)))),
    cell('Term', 'number mono', leads && row.term),
    cell('Since', 'number', row.since && ago(row.since)),
    cell('Lease', 'number', row.lease_ms && setting(row.lease_ms)),
    cell('Changes/h', 'number', String(row.changes)),
    cell('Least left', '', typeof row.least_left === 'number' && leastLeft(row.least_left)))
}

// cell carries its label for phones, where the table has no head.
const cell = (label, kind, content) => h('td', { class: `${kind} ${content ? '' : 'none'}`, 'data-label': label },
  content || h('span', { class: 'dim' }, '–'))

// leastLeft is a bar with a mark at a quarter of the lease, and the number.
function leastLeft(part) {
  const width = Math.max(0, Math.min(1, part)) * 48
  return h('span', { class: 'least' },
    svg('svg', { class: 'meter', width: 48, height: 8, 'aria-hidden': 'true' },
      svg('rect', { class: 'ground', width: 48, height: 8, rx: 2 }),
      svg('rect', { class: part < 0.25 ? 'close' : 'left', width, height: 8, rx: 2 }),
      svg('path', { class: 'quarter', d: 'M12 0v8' })),
    percent(part))
}
