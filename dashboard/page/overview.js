// All elections, the worst first.
import { h, update } from './dom.js'
import { healths, healthShape } from './health.js'
import { meanings } from './meanings.js'
import { table } from './rows.js'
import { banners, stores } from './stores.js'
import { short } from './values.js'

const rows = 100 // on a page
const typingPause = 150

let last = '#/'

// lastOverview returns the address of the overview that was shown last.
export const lastOverview = () => last

export class Overview {
  stream = 'api/stream'
  root = h('div', { class: 'overview' })
  #parameters = new URLSearchParams()
  #typing = 0
  #vacant = null

  constructor() {
    this.root.addEventListener('input', (event) => this.#typed(event.target))
    this.root.addEventListener('keydown', (event) => this.#key(event))
  }

  parameters(parameters) {
    this.#parameters = parameters
    last = this.#link({})
    const search = document.getElementById('search')
    if (search && search !== document.activeElement) search.value = this.#get('q')
  }

  #get = (name) => this.#parameters.get(name) ?? ''

  get #from() {
    return Math.max(0, Number.parseInt(this.#get('from'), 10) || 0)
  }

  load(get) {
    const query = new URLSearchParams({ q: this.#get('q'), offset: this.#from, limit: rows })
    if (this.#get('sort')) query.set('sort', this.#get('sort'))
    if (this.#get('health')) query.set('health', this.#get('health'))
    return get('api/overview?' + query)
  }

  title({ bad }) {
    return (bad ? `(${bad}) ` : '') + 'Elections · Tenure dashboard'
  }

  render(data) {
    const several = data.sources.length > 1
    update(this.root,
      h('h1', { class: 'unseen' }, 'Elections'),
      banners(data.sources),
      this.#filters(data.counts),
      data.elections.length ? table(data.elections, { several, sort: this.#get('sort'), link: (sort) => this.#link({ sort, from: '' }) }) : this.#nothing(data),
      this.#pages(data),
      stores(data.sources),
      meanings())
    if (this.#vacant !== null && this.#vacant !== data.counts.vacant) {
      this.announce(`Elections without a leader: ${data.counts.vacant}`)
    }
    this.#vacant = data.counts.vacant
  }

  // --- Filters

  #filters(counts) {
    const chips = Object.keys(healths).filter((health) => health !== 'starting' || counts.starting).map((health) => this.#chip(health, counts[health] ?? 0))
    return h('div', { class: 'filters' },
      h('nav', { class: 'chips', 'aria-label': 'Filter by health' }, this.#chip('', counts.all), chips),
      h('input', { id: 'search', type: 'search', value: this.#get('q'), autocomplete: 'off', spellcheck: 'false',
        placeholder: matchMedia('(min-width: 800px)').matches ? 'Search  ( / )' : 'Search',
        'aria-label': 'Search for a part of an election, a store or a leader', 'aria-keyshortcuts': '/' }))
  }

  #chip(health, count) {
    const chosen = this.#get('health') === health
    return h('a', { class: `chip ${health} ${count ? '' : 'none'}`, href: this.#link({ health, from: '' }),
      'aria-current': chosen ? 'true' : null, title: health ? healths[health].about : null },
    health && healthShape(health), health ? healths[health].word : 'All', h('b', null, count.toLocaleString('en')))
  }

  // link returns the address of this view with other parameters.
  #link(changes) {
    const next = new URLSearchParams(this.#parameters)
    for (const [name, text] of Object.entries(changes)) {
      if (text === '') next.delete(name)
      else next.set(name, text)
    }
    return next.size ? `#/?${next}` : '#/'
  }

  #typed(search) {
    clearTimeout(this.#typing)
    this.#typing = setTimeout(() => {
      location.replace(this.#link({ q: search.value.trim(), from: '' }))
    }, typingPause)
  }

  // Arrow keys move between the rows, and Escape clears the search.
  #key(event) {
    if (event.key === 'Escape' && event.target.id === 'search') {
      event.target.value = ''
      return this.#typed(event.target)
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step) return
    const links = [...this.root.querySelectorAll('tbody th a')]
    const at = links.indexOf(event.target)
    const next = at < 0 && event.target.id === 'search' ? links[0] : at >= 0 && links[at + step]
    if (!next) return
    event.preventDefault()
    next.focus()
  }

  // --- Pages

  #pages({ matching, elections }) {
    if (matching <= rows && this.#from === 0) return null
    const last = this.#from + elections.length
    const step = (from, text, there) => there
      ? h('a', { class: 'button', href: this.#link({ from: from > 0 ? String(from) : '' }) }, text)
      : h('span', { class: 'button off' }, text)
    return h('nav', { class: 'pages', 'aria-label': 'Pages' },
      step(this.#from - rows, 'Previous', this.#from > 0),
      h('span', null, elections.length
        ? `${(this.#from + 1).toLocaleString('en')} to ${last.toLocaleString('en')} of ${matching.toLocaleString('en')}`
        : `none from ${this.#from + 1} on`),
      step(this.#from + rows, 'Next', last < matching))
  }

  // --- Empty states

  #nothing({ counts, sources }) {
    if (counts.all > 0) {
      return h('p', { class: 'note' }, this.#get('q') ? ['No election matches “', short(this.#get('q')), '”. ']
        : 'No election is in this state. ', h('a', { href: '#/' }, 'Show all elections'))
    }
    if (sources.some((s) => !s.ok)) {
      return h('p', { class: 'note' }, 'There are no elections to show: see the problem of the store. ',
        'If the dashboard has no right to list elections, name them: ', h('code', null, 'tenure dashboard --election NAME'))
    }
    return h('p', { class: 'note' }, 'There are no elections yet. One appears here once its first candidate has started: ',
      h('code', null, 'tenure run --store URL --election NAME -- PROGRAM'))
  }
}
