// The stream of events: one for each tab, closed while the tab is hidden.

const firstWait = 2000
const longestWait = 30000
const kinds = ['change', 'renewal', 'source', 'reset']

// Live keeps a stream open. It calls onState with live, connecting, lost or paused, and onEvent
// with each event. After live the caller must reload its data, because events may have been missed.
export class Live {
  #url = null
  #source = null
  #timer = 0
  #wait = firstWait

  constructor(onState, onEvent) {
    this.onState = onState
    this.onEvent = onEvent
    document.addEventListener('visibilitychange', () => this.#open())
  }

  // follow replaces the stream.
  follow(url) {
    this.#url = url
    this.#open()
  }

  #open() {
    clearTimeout(this.#timer)
    this.#source?.close()
    this.#source = null
    if (document.hidden) return this.onState('paused')
    this.onState('connecting')
    const source = new EventSource(this.#url)
    this.#source = source
    source.onopen = () => {
      this.#wait = firstWait
      this.onState('live')
    }
    source.onerror = () => this.#failed()
    for (const kind of kinds) {
      source.addEventListener(kind, (event) => this.onEvent(kind, JSON.parse(event.data)))
    }
  }

  // The browser reconnects by itself, with the id of the last event, unless the server refused.
  #failed() {
    this.onState('lost')
    if (this.#source.readyState !== EventSource.CLOSED) return
    this.#timer = setTimeout(() => this.#open(), this.#wait * (0.75 + Math.random() / 2))
    this.#wait = Math.min(longestWait, this.#wait * 2)
  }
}
