// One election: its leader, the time left of the lease, the former leaders, and the time that each
// change of leader took.
import { Actions } from './actions.js'
import { h, update } from './dom.js'
import { badges, healths, leaderOf, leaderText } from './health.js'
import { eventList } from './events.js'
import { failovers } from './failovers.js'
import { jobs } from './jobs.js'
import { timeLeft, updateTimeLeft } from './timeleft.js'
import { lastOverview } from './overview.js'
import { members } from './members.js'
import { record } from './record.js'
import { renewals } from './renewals.js'
import { banners, storeLine, whole } from './stores.js'
import { meanings } from './meanings.js'
import { Timeline } from './timeline.js'
import { ago, percent, setting } from './times.js'
import { plain, value } from './values.js'

const mostRenewals = 240 // as the server keeps them

export class Election {
  root = h('div', { class: 'election' })
  #width = 0
  #leader = null // the leader that was shown last, to announce a change
  #sources = null
  #changes = 0 // of the stores: an answer may be older than the last one

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
    const changes = this.#changes
    const [election, overview] = await Promise.all([
      get('api/election' + this.query), this.#sources ?? get('api/overview?limit=1'),
    ])
    if (changes === this.#changes) this.#sources = overview
    return { ...election, leftAt: Date.parse(election.now), version: overview.version,
      problem: overview.problem, actions: overview.actions, links: overview.links,
      sources: overview.sources.filter((s) => s.name === this.source) }
  }

  // hear applies an event. It reports whether no request is needed.
  hear(kind, event, data) {
    if (kind === 'renewal') {
      this.#renewed(event, data)
      return true
    }
    if (kind === 'source' || kind === 'reset') {
      this.#sources = null
      this.#changes++
    }
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
    return `${row.name}: ${row.leader || healths.vacant.word} · Tenure dashboard`
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
      banners(data.sources),
      headline(data),
      timeLeft(data),
      panel('Timeline of leaders', 'wide', this.timeline.render(data, width)),
      data.jobs.length > 0 && panel('Scheduled jobs', 'wide', jobs(data)),
      panel('Failovers', polled ? 'wide' : '', failovers(data)),
      !polled && panel('Lease left at each renewal', '', renewals(data, half)),
      panel('Candidates', 'wide', members(data)),
      actions && panel('Actions', 'wide actions', actions),
      panel('Events', 'wide', eventList(data.events)),
      panel('Record', 'wide', record(data)),
      meanings())
    this.#announce(row)
  }

  #announce(row) {
    const leader = row.last_known ? 'The leader is not known at present'
      : leaderOf(row) ? `${plain(row.leader, 60)} leads` : 'There is no leader'
    if (this.#leader !== null && this.#leader !== leader) this.announce(leader)
    this.#leader = leader
  }
}

const panel = (title, kind, ...content) =>
  h('section', { class: `panel ${kind}`, 'aria-label': title }, h('h2', null, title), content)

const linkWords = { log: 'Logs', runbook: 'Runbook' }

// linksOf fills in the templates of the links. The server has checked that they are web addresses.
function linksOf({ row, links }) {
  const words = { store: row.source, election: row.name, leader: row.leader ?? '', term: row.term ?? '' }
  return Object.entries(links).map(([name, template]) => h('a', { href: filled(template, words), target: '_blank', rel: 'noreferrer' }, linkWords[name]))
}

const filled = (template, words) => template.replace(/\{(\w+)\}/g, (all, name) =>
  (Object.hasOwn(words, name) ? encodeURIComponent(words[name]) : all))

function headline(data) {
  const { row, sources } = data
  const leader = leaderOf(row)
  return h('section', { class: `panel wide headline ${row.health}`, 'aria-label': 'State' },
    h('div', { class: 'title' }, h('h1', null, value(row.name, 80)), badges(row), linksOf(data)),
    sources.map(storeLine),
    row.problem && h('div', { class: 'problem' }, value(row.problem, 300), whole(row.detail)),
    h('dl', { class: 'facts' },
      fact(row.last_known ? 'Last known leader' : 'Leader', leaderText(row, 60, true), 'large'),
      row.leader && row.address && fact('Address', value(row.address, 60)),
      row.term > 0 && fact('Term', h('span', { class: 'mono' }, row.term)),
      row.last_known ? fact('Last seen', [ago(row.last_known, true), ' ago'])
        : row.since && fact(sinceWord(row, leader), ago(row.since, true)),
      row.lease_ms > 0 && fact('Lease', setting(row.lease_ms)),
      fact('Changes in 15 min', row.changes),
      typeof row.least_left === 'number' && fact('Least left in 10 min', percent(row.least_left))))
}

const sinceWord = (row, leader) => !leader ? 'No leader for'
  : row.unconfirmed ? 'Record found before' : row.at_least ? 'Leads for at least' : 'Leads for'

const fact = (name, content, kind = '') =>
  h('div', { class: kind }, h('dt', null, name), h('dd', null, content))
