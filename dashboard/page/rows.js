// The table of elections.
import { h, svg } from './dom.js'
import { badges, leaderText } from './health.js'
import { whole } from './stores.js'
import { ago, percent, setting } from './times.js'
import { plain, short, value } from './values.js'

const electionPath = (row) => `#/e/${encodeURIComponent(row.source)}/${encodeURIComponent(row.name)}`

// The columns that sort, and by which order of the server.
const columns = [
  ['Health', ''], ['Election', 'name', ''], ['Leader', 'leader', ''], ['Term', null, 'number'], ['Since', 'since', 'number'],
  ['Lease', null, 'number'], ['Changes', 'changes', 'number'], ['Least left', null, ''],
]

// table makes the table. If there are several stores, it names that of each election, and can
// group by store. The function link returns the address of the table in another order.
export function table(elections, { several, sort, link }) {
  return h('table', { class: 'elections' },
    h('caption', { class: several ? 'by-store' : 'unseen' }, sort ? `Elections by ${sort}` : 'Elections, the worst first',
      several && [' · ', sort === 'store' ? h('a', { href: link('') }, 'The worst first') : h('a', { href: link('store') }, 'Group by store')]),
    h('thead', null, h('tr', null, columns.map(([text, order, kind]) =>
      h('th', { scope: 'col', class: kind, 'aria-sort': order === sort ? 'other' : null },
        order === null ? text : h('a', { href: link(order), 'aria-label': `${text}: sort` }, text, order === sort && ' ▾'))))),
    h('tbody', null, elections.flatMap((row, i) => [
      sort === 'store' && row.source !== elections[i - 1]?.source && group(row.source), electionRow(row, several && sort !== 'store')])))
}

const group = (source) => h('tr', { class: 'group', 'data-key': `group ${source}` },
  h('td', { colspan: columns.length }, value(source, 80)))

function electionRow(row, several) {
  return h('tr', { 'data-key': electionPath(row), class: `row ${row.health}` },
    h('td', { class: 'state' }, badges(row)),
    h('th', { scope: 'row' },
      h('div', { class: 'line' },
        h('a', { href: electionPath(row), title: [...row.name].length > 64 ? plain(row.name) : null }, short(row.name, 64)),
        several && h('span', { class: 'under' }, short(row.source, 60))),
      row.problem && h('div', { class: 'under problem' }, value(row.problem, 160), whole(row.detail))),
    cell('Leader', '', (row.leader || row.last_known) && h('div', { class: 'line' },
      leaderText(row, 40), row.address && h('span', { class: 'under' }, short(row.address, 40)))),
    cell('Term', 'number mono', row.leader && row.term),
    cell('Since', 'number', row.since && [row.at_least && 'over ', ago(row.since)]),
    cell('Lease', 'number', row.lease_ms && setting(row.lease_ms)),
    cell('Changes', 'number', String(row.changes)),
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
