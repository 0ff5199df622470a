// One election: its leader, the time left of the lease, the former leaders, and the time that each
// change of leader took.
import { Actions } from './actions.js'
import { h, update } from './dom.js'
import { badge, healths, leaderOf } from './health.js'
import { eventList } from './events.js'
import { failovers } from './failovers.js'
import { timeLeft, updateTimeLeft } from './timeleft.js'
import { lastOverview } from './overview.js'
import { members } from './members.js'
import { record } from './record.js'
import { renewals } from './renewals.js'
import { storeLine } from './stores.js'
import { Timeline } from './timeline.js'
import { ago, percent, setting } from './times.js'
import { plain, value } from './values.js'

const mostRenewals = 240 // as the server keeps them

export class Election {
  root = h('div', { class: 'election' })
  #width = 0
  #leader = null // the leader that was shown last, to announce a change
  #sources = null

  constructor(source, name) {
    this.source = source
    this.name = name
    this.query = '?' + new URLSearchParams({ source, name })
    this.stream = 'api/stream' + this.query
    this.timeline = new Timeline(this.root, () => this.redraw())
    this.actions = new Actions(this)
    new ResizeObserver(() => this.#resized()).observe(this.root)
  }

  #resized() {
    if (this.#width === this.root.clientWidth) return
    this.#width = this.root.clientWidth
    this.redraw?.()
  }

  parameters(parameters) {
    this.timeline.zoom = parameters.get('zoom') ?? ''
  }

  // The health of the stores is part of the overview.
  async load(get) {
    const [election, overview] = await Promise.all([
      get('api/election' + this.query), this.#sources ?? get('api/overview?limit=1'),
    ])
    this.#sources = overview
    return { ...election, leftAt: Date.parse(election.now), version: overview.version,
      problem: overview.problem, actions: overview.actions,
      sources: overview.sources.filter((s) => s.name === this.source) }
  }

  // hear applies an event. It reports whether no request is needed.
  hear(kind, event, data) {
    if (kind === 'renewal') {
      this.#renewed(event, data)
      return true
    }
    if (kind === 'source' || kind === 'reset') this.#sources = null
    return kind === 'source' && event.name !== this.source
  }

  #renewed(event, data) {
    data.renewals = [...data.renewals, { at: event.at, left: event.left }].slice(-mostRenewals)
    data.left = event.left_range
    data.leftAt = Date.parse(event.at)
    data.next_renewal = new Date(Date.parse(event.renewed) + data.row.lease_ms / 3).toISOString()
    this.redraw()
  }

  tick(data) {
    updateTimeLeft(data)
    if (this.timeline.moved()) this.redraw()
  }

  title({ row }) {
    return `${row.name}: ${leaderOf(row) ?? healths.vacant.word} · Tenure dashboard`
  }

  render(data) {
    this.data = data
    const { row } = data
    const actions = this.actions.render(data)
    const polled = !data.pushed && data.renewals.length === 0 // the page does not see each renewal
    const all = this.root.clientWidth
    const width = Math.max(200, all - 2 * 17) // inside a panel
    const half = all >= 950 ? (all - 16) / 2 - 2 * 17 : width
    update(this.root,
      h('a', { class: 'back', href: lastOverview() }, '← All elections'),
      headline(data),
      timeLeft(data),
      panel('Timeline of leaders', 'wide', this.timeline.render(data, width)),
      panel('Failovers', polled ? 'wide' : '', failovers(data.terms)),
      !polled && panel('Lease left at each renewal', '', renewals(data, half)),
      panel('Candidates', 'wide', members(data)),
      actions && panel('Actions', 'wide actions', actions),
      panel('Events', 'wide', eventList(data.events)),
      panel('Record', 'wide', record(data.record)))
    this.#announce(row)
  }

  #announce(row) {
    const leader = leaderOf(row) ? `${plain(row.leader, 60)} leads` : 'There is no leader'
    if (this.#leader !== null && this.#leader !== leader) this.announce(leader)
    this.#leader = leader
  }
}

const panel = (title, kind, ...content) =>
  h('section', { class: `panel ${kind}`, 'aria-label': title }, h('h2', null, title), content)

function headline({ row, sources }) {
  const leader = leaderOf(row)
  return h('section', { class: `panel wide headline ${row.health}`, 'aria-label': 'State' },
    h('div', { class: 'title' }, h('h1', null, value(row.name, 80)), badge(row.health)),
    sources.map(storeLine),
    row.problem && h('p', { class: 'problem' }, value(row.problem, 300)),
    h('dl', { class: 'facts' },
      fact('Leader', leader ? value(row.leader, 60) : h('span', { class: 'dim' }, 'none'), 'large'),
      leader && row.address && fact('Address', value(row.address, 60)),
      row.term > 0 && fact(leader ? 'Term' : 'Last term', h('span', { class: 'mono' }, row.term)),
      row.since && fact(leader ? 'Leads for' : 'No leader for', ago(row.since, true)),
      row.lease_ms > 0 && fact('Lease', setting(row.lease_ms)),
      fact('Changes in an hour', row.changes),
      typeof row.least_left === 'number' && fact('Least left in 10 min', percent(row.least_left))))
}

const fact = (name, content, kind = '') =>
  h('div', { class: kind }, h('dt', null, name), h('dd', null, content))
