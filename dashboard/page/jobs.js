// The scheduled jobs of an election: the last ticks of each, and the next one. The store keeps the
// ticks, so a new leader changes nothing here.
import { h, head, svg } from './dom.js'
import { ago, clock, duration, moment, now, stamp } from './times.js'
import { plain, value } from './values.js'

// states are the states of a tick: each a word, a shape and a color.
export const states = {
  finished: { word: 'finished', about: 'the run ended well', path: 'M-3.2.3-1 2.6 3.4-2.6' },
  failed: { word: 'failed', about: 'the run returned an error, or took too long', path: 'M-2.8-2.8 2.8 2.8M2.8-2.8-2.8 2.8' },
  lost: { word: 'lost', about: 'the term of its leader ended before the end of the run was recorded', path: 'M-3.5 0h7' },
  missed: { word: 'missed', about: 'no run started: no leader waited for the tick, or it came due during a run', path: 'M0-3.6v4.2M0 2.4v1.2' },
  started: { word: 'running', about: 'the run goes on', path: 'M-1.8-3.2 3 0-1.8 3.2Z' },
}

const known = (state) => (Object.hasOwn(states, state) ? state : 'lost')

// tickBadge is a state as a shape and a word.
export const tickBadge = (state) => h('span', { class: 'tick-state', title: states[known(state)].about },
  svg('svg', { class: 'shape', viewBox: '0 0 14 14', 'aria-hidden': 'true' }, cell(state, 0, 14)), states[known(state)].word)

const cell = (state, x, height) => svg('g', { class: `ticked ${known(state)}` },
  svg('rect', { x, width: 14, height, rx: 2 }),
  svg('path', { d: states[known(state)].path, transform: `translate(${x + 7} ${height / 2})` }))

export function jobs({ jobs, more_jobs: more }) {
  const ticks = jobs.flatMap((job) => (job.state?.ticks ?? []).map((tick) => ({ job, tick })))
  return [
    h('table', { class: 'jobs' }, head('Job', 'Last ticks, and the last day by the hour', 'Next tick', 'Last success', 'Missed'),
      h('tbody', null, jobs.map(row))),
    more > 0 && h('p', { class: 'dim' }, `${more.toLocaleString('en')} more jobs are not shown.`),
    h('p', { class: 'legend' }, Object.keys(states).map(tickBadge)),
    ticks.length > 0 && table(ticks),
  ]
}

function row(job) {
  const { name, state, problem, read } = job
  return h('tr', { 'data-key': `job ${name}` },
    h('th', { scope: 'row' }, h('b', null, value(name, 64)), state && h('div', { class: 'under mono' }, value(state.plan, 60)),
      problem && h('div', { class: 'problem' }, value(problem, 160))),
    labeled('Last ticks', state?.ticks?.length ? [h('div', { class: 'ticks' }, strip(state.ticks), h('span', { class: 'under' }, 'since ', moment(state.ticks[0].planned, 5))),
      last(state.ticks.at(-1)), day(state.day)] : dim(read ? 'no tick has started' : 'not read yet')),
    labeled('Next tick', state?.next ? due(state) : dim('–')),
    labeled('Last success', state?.success.ended ? [ago(state.success.ended), ' ago'] : dim(state ? 'none' : '–')),
    labeled('Missed', state ? missed(state.missed) : dim('–')))
}

const dim = (text) => h('span', { class: 'dim' }, text)

const labeled = (label, content) => h('td', { 'data-label': label }, content)

// strip has a cell for each tick.
function strip(ticks) {
  const step = 16
  return svg('svg', { class: 'strip', width: ticks.length * step - 2, height: 20, role: 'img', 'aria-label': summary(ticks) },
    ticks.map((tick, i) => svg('g', null, cell(tick.state, i * step, 20), svg('title', null, sentence(tick)))))
}

function summary(ticks) {
  const counts = Object.entries(states).map(([state, { word }]) => [ticks.filter((t) => known(t.state) === state).length, word])
  return `Since ${stamp(ticks[0].planned)}: ${counts.filter(([n]) => n > 0).map(([n, word]) => `${n} ${word}`).join(', ')}`
}

const took = (tick) => (tick.ended ? Date.parse(tick.ended) : now()) - Date.parse(tick.began)

function sentence(tick) {
  const { word } = states[known(tick.state)]
  return `${plain(tick.name ?? '', 60)} ${stamp(tick.planned)} ${word}, ${tick.ended ? 'after' : 'for'} ${duration(took(tick))}, on ${plain(tick.id, 60)}`.trim()
}

// last is the newest tick in words: where it ran, and how long.
function last(tick) {
  return h('div', { class: 'last' }, tickBadge(tick.state), ' ', moment(tick.planned, 8), tick.ended
    ? [h('span', { class: 'dim' }, known(tick.state) === 'lost' ? ' found after ' : ' after '), duration(took(tick))]
    : [h('span', { class: 'dim' }, ' for '), ago(tick.began)],
  h('span', { class: 'dim' }, ' on '), value(tick.id, 40),
  tick.error && h('div', { class: 'problem' }, value(tick.error, 120)))
}

const hour = 3600000
const hours = 24

// day has a bar for each hour of the last day, and its numbers in words.
function day(counts) {
  if (!counts.hour) return null
  const until = Math.floor(now() / hour) * hour // when the last hour shown began
  const all = Array.from({ length: hours }, (_, i) => hourOf(counts, until - (hours - 1 - i) * hour))
  const most = Math.max(1, ...all.map(sum))
  const text = words(total(all))
  return h('div', { class: 'day' },
    svg('svg', { class: 'strip', width: hours * 8 - 2, height: 24, role: 'img', 'aria-label': `The last day, by the hour: ${text}` },
      all.map((of, i) => svg('g', null, svg('rect', { class: 'hour', x: i * 8, width: 6, height: 24 }),
        bars(of, i * 8, 24 / most), svg('title', null, `${clock(of.at, 5)} to ${clock(of.at + hour, 5)}: ${words(of)}`)))),
    h('span', { class: 'under' }, '24 h: ', text))
}

const counted = ['finished', 'failed', 'lost', 'missed'] // from the bottom of a bar

// hourOf returns the counts of the hour that begins at a time.
function hourOf(counts, at) {
  const back = Math.round((Date.parse(counts.hour) - at) / hour)
  return { at, ...Object.fromEntries(counted.map((state) => [state, (back >= 0 && counts[state]?.at(-1 - back)) || 0])) }
}

const sum = (of) => counted.reduce((n, state) => n + of[state], 0)

const total = (all) => Object.fromEntries(counted.map((state) => [state, all.reduce((n, of) => n + of[state], 0)]))

const words = (of) => counted.filter((state) => of[state] > 0).map((state) => `${of[state].toLocaleString('en')} ${state}`).join(', ') || 'no tick'

function bars(of, x, scale) {
  let y = 24
  return counted.filter((state) => of[state] > 0).map((state) => {
    const height = Math.max(2, of[state] * scale)
    y -= height
    return svg('g', { class: `ticked ${state}` }, svg('rect', { x, y: Math.max(0, y), width: 6, height }))
  })
}

const running = (state) => (state.ticks ?? []).some((tick) => tick.state === 'started')

// due is the next tick. One that is past comes late, unless a run goes on.
const due = (state) => Date.parse(state.next) > now() || running(state) ? moment(state.next, 8)
  : h('span', { class: 'problem' }, moment(state.next, 8), h('span', { class: 'under' }, ' due for ', ago(state.next)))

const missed = ({ late, overlap, last }) => late + overlap === 0 ? dim('none')
  : [[late > 0 && `${late.toLocaleString('en')} late`, overlap > 0 && `${overlap.toLocaleString('en')} during a run`].filter(Boolean).join(', '),
    last && h('div', { class: 'under' }, 'last ', moment(last, 8))]

// table has all ticks, the newest first, also for screen readers.
function table(ticks) {
  const all = ticks.toSorted((a, b) => b.tick.planned.localeCompare(a.tick.planned))
  return h('details', { class: 'as-table' }, h('summary', null, `The ticks as a table (${all.length})`),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Ticks' },
      h('table', null, head('Tick', 'Job', 'State', 'Began', 'Took', 'On', ['Term', 'number'], ['Attempt', 'number'], 'Error'),
        h('tbody', null, all.map(({ job, tick }) => h('tr', { 'data-key': `${job.name} ${tick.planned}` },
          h('td', { class: 'mono' }, moment(tick.planned, 8), tick.name && [' ', value(tick.name, 40)]), h('th', { scope: 'row' }, value(job.name, 40)),
          h('td', null, tickBadge(tick.state)), h('td', { class: 'mono' }, moment(tick.began, 8)),
          h('td', null, tick.ended ? duration(took(tick)) : ''), h('td', null, value(tick.id, 40)),
          h('td', { class: 'number mono' }, tick.token), h('td', { class: 'number' }, tick.attempt),
          h('td', null, tick.code > 0 && `status ${tick.code} `, tick.error && value(tick.error, 80))))))))
}
