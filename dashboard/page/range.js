// The time that the timeline shows, as the reader chooses it by drag or by keys. It is a part of the
// page's address, so that it can be shared.

const least = 1000 // ms
const nearby = 8 // a drag of fewer pixels is a click

// rangeOf returns the chosen time, or null.
export function rangeOf(zoom) {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(zoom) ?? []
  return to && Number(to) - Number(from) >= least ? { start: Number(from), end: Number(to) } : null
}

export class Range {
  view = null // of the last picture: start, end, left and width
  drag = null // the time from where a drag began to where it is
  #redraw
  #begun = 0 // in pixels

  constructor(root, redraw) {
    this.#redraw = redraw
    root.addEventListener('pointerdown', (event) => this.#begin(event))
    root.addEventListener('pointermove', (event) => this.#move(event))
    root.addEventListener('pointerup', (event) => this.#end(event))
    root.addEventListener('pointercancel', () => (this.drag = null))
    root.addEventListener('keydown', (event) => this.#key(event))
  }

  #at(event) {
    const { start, end, left, width } = this.view
    const x = event.clientX - event.target.closest('svg').getBoundingClientRect().left - left
    return Math.round(start + Math.max(0, Math.min(1, x / (width - left - 6))) * (end - start))
  }

  #begin(event) {
    if (event.button !== 0 || !event.target.closest?.('.timeline')) return
    this.#begun = event.clientX
    this.drag = { from: this.#at(event), to: this.#at(event) }
  }

  #move(event) {
    if (!this.drag || !event.target.closest?.('.timeline')) return
    this.drag.to = this.#at(event)
    this.#redraw()
  }

  #end(event) {
    if (!this.drag) return
    if (event.target.closest?.('.timeline')) this.drag.to = this.#at(event)
    const { from, to } = this.drag
    this.drag = null
    if (Math.abs(event.clientX - this.#begun) >= nearby) this.#choose(Math.min(from, to), Math.max(from, to))
    else this.#redraw()
  }

  // Plus and minus change the scale, and Shift with an arrow moves by a quarter.
  #key(event) {
    if (!event.target.closest?.('.timeline') || event.ctrlKey || event.metaKey || event.altKey) return
    const { start, end } = this.view
    const span = end - start
    const by = event.shiftKey ? { ArrowLeft: -1 / 4, ArrowRight: 1 / 4 }[event.key] : undefined
    const scale = { '+': 1 / 2, '-': 2 }[event.key]
    if (by === undefined && scale === undefined) return
    event.preventDefault()
    event.stopImmediatePropagation()
    const middle = (start + end) / 2 + span * (by ?? 0)
    const half = (span * (scale ?? 1)) / 2
    this.#choose(middle - half, middle + half)
  }

  #choose(from, to) {
    const half = Math.max(0, least - (to - from)) / 2
    location.replace(`${location.hash.split('?')[0]}?zoom=${Math.round(from - half)}-${Math.round(to + half)}`)
  }
}
