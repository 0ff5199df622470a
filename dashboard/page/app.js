// The page: it chooses the view, loads the data of the view, and shows failures.
import { h, update } from './dom.js'
import { Election } from './election.js'
import { Live } from './live.js'
import { Overview } from './overview.js'
import { inUTC, setNow, stamp, switchZone, tick } from './times.js'
import { plain } from './values.js'

const leastPause = 100 // between two requests, in milliseconds
const longestPause = 30000 // some figures change without an event, such as the changes in an hour
const failurePause = 5000
const patience = 10000 // time limit of one request

const main = document.getElementById('main')
const banner = document.getElementById('banner')
const indicator = document.getElementById('live')
const zone = document.getElementById('zone')
const announcer = document.getElementById('announcer')

let view = null
let data = null // the last answer for the view
let failure = null // the failure of the last request, as text
let state = 'connecting' // the state of the stream
const live = new Live(streamState, streamEvent)

// --- Which view is shown

function route() {
  const [path, query] = location.hash.replace(/^#/, '').split('?')
  const [, kind, source, name] = path.split('/')
  const parameters = new URLSearchParams(query)
  const key = kind === 'e' && name !== undefined ? `e/${source}/${name}` : ''
  if (view?.key !== key) change(key, key && decode(source), key && decode(name))
  view.parameters(parameters)
  if (data) render()
  refreshSoon(0)
}

const decode = (text) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // the address was typed, and has an invalid escape
  }
}

function change(key, source, name) {
  const first = view === null
  current?.abort()
  data = failure = null
  view = key ? new Election(source, name) : new Overview()
  view.key = key
  view.redraw = () => data && render()
  view.post = post
  view.announce = (text) => (announcer.textContent = text)
  main.replaceChildren(view.root)
  if (!first) main.focus({ preventScroll: true })
  scrollTo(0, 0)
  live.follow(view.stream)
  showState()
}

function render() {
  view.render(data)
  document.title = plain(view.title(data), 80)
  document.getElementById('version').textContent = data.version ? plain(data.version, 30) : ''
}

// --- When data is loaded

let current = null // the request under way
let timer = 0
let due = 0
let pause = leastPause
let last = 0

// refreshSoon loads again: after a pause since the last answer, and not during a request.
function refreshSoon(wait = Math.max(0, last + pause - Date.now())) {
  const at = Date.now() + wait
  if (timer && due <= at) return
  clearTimeout(timer)
  due = at
  timer = setTimeout(refresh, wait)
}

async function refresh() {
  timer = 0
  if (document.hidden) return
  if (current) current.again = true
  else await ask()
}

async function ask() {
  const asked = view
  const controller = new AbortController()
  current = controller
  const begun = Date.now()
  const impatient = setTimeout(() => controller.abort(), patience)
  const outcome = await view.load((path) => get(path, controller.signal))
    .then((answer) => () => take(answer), (error) => () => fail(error))
  clearTimeout(impatient)
  current = null
  last = Date.now()
  pause = Math.max(leastPause, 4 * (last - begun)) // a slow server gets fewer requests
  if (asked !== view) return refreshSoon(0)
  refreshSoon(controller.again ? pause : longestPause)
  outcome()
  if (failure) refreshSoon(failurePause)
  showState()
}

async function get(path, signal) {
  return read(await fetch(path, { signal, cache: 'no-store' }))
}

// post sends an action to the server.
async function post(path, request) {
  const signal = AbortSignal.timeout(patience)
  const headers = { 'Content-Type': 'application/json' }
  return read(await fetch(path, { method: 'POST', headers, body: JSON.stringify(request), signal }))
}

async function read(response) {
  const answer = await response.json().catch(() => ({ error: `the answer has status ${response.status}` }))
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status })
  return answer
}

function take(answer) {
  failure = null
  setNow(answer.now)
  data = answer
  render()
}

// fail keeps the data on the page, unless the server answers that the election does not exist.
function fail(error) {
  failure = error.status ? `The dashboard answers: ${error.message}.` : 'The connection to the dashboard is lost.'
  if (error.status === 404) data = null
  if (data) return
  document.title = 'Tenure dashboard'
  update(view.root, h('p', { class: 'note' }, plain(failure), ' ',
    error.status === 404 ? h('a', { href: '#/' }, 'Show all elections') : 'Trying again.'))
}

// --- The stream

function streamState(next) {
  state = next
  if (state === 'live' || state === 'lost') refreshSoon(0) // events may have been missed, or the server is gone
  showState()
}

function streamEvent(kind, event) {
  if (data && view.hear?.(kind, event, data)) return
  refreshSoon()
}

const words = { live: 'Live', stale: 'Stale', connecting: 'Connecting', lost: 'Not connected', paused: 'Paused' }

function showState() {
  const shown = state === 'live' && data?.sources.some((s) => s.away) ? 'stale' : state
  indicator.dataset.state = shown
  indicator.textContent = words[shown]
  const trouble = failure ?? (state === 'lost' ? 'There are no live updates.' : null)
  const text = data && (trouble ? `${trouble} This is the state of ${stamp(data.now)}. Trying again.` : plain(data.problem ?? ''))
  banner.hidden = !text // without data, the view itself shows the failure
  if (text && banner.textContent !== text) banner.textContent = text
}

// --- The keys and clocks of all views

function showZone() {
  zone.textContent = inUTC() ? 'UTC' : 'Local time'
  zone.title = inUTC() ? 'Times are in UTC: show local times' : 'Times are local: show UTC'
}

zone.addEventListener('click', () => {
  switchZone()
  showZone()
  if (data) render()
})

// The link must not change the address, which names the view.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault()
  main.focus()
})

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input')
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const search = document.getElementById('search')
    if (!search) return
    event.preventDefault()
    search.focus()
  }
})

setInterval(() => {
  if (document.hidden || !data) return
  tick(main)
  view.tick?.(data)
}, 100)

addEventListener('hashchange', route)
showZone()
route()
