// What the words on the page mean, for readers who cannot hover.
import { h } from './dom.js'
import { badge, endBadge, endings, healths } from './health.js'
import { states, tickBadge } from './jobs.js'

const words = {
  Since: 'when the leader, or that there is none, was first seen',
  Changes: 'changes of leader in the last 15 minutes that were not asked for',
  'Least left': 'the smallest part of the lease that was left at a renewal in the last ten minutes',
  Missed: 'ticks of a job that never ran: late if no leader waited for them, or due during a run',
  'Last known': 'what the store showed before it stopped answering',
  Downtime: 'how long no member could act: from the end of the last lease, or from its release, to the next leader',
}

export const meanings = () => h('details', { class: 'wide meanings' }, h('summary', null, 'What the words mean'),
  h('dl', null,
    Object.entries(healths).map(([name, { about }]) => [h('dt', null, badge(name)), h('dd', null, about)]),
    Object.entries(endings).map(([name, { about }]) => [h('dt', null, endBadge(name)), h('dd', null, about)]),
    Object.entries(states).map(([name, { about }]) => [h('dt', null, tickBadge(name)), h('dd', null, about)]),
    Object.entries(words).map(([word, about]) => [h('dt', null, word), h('dd', null, about)])))
