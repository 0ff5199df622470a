package main

// flicker ends a member's watch for a while, as when its connection breaks, and begins it again.
// Changes in between are not pushed. The watch may end while an operation of the member is in
// flight.
func (w *world) flicker(n *node) {
	if n.blind {
		return
	}
	n.later(0, func() {
		if w.calm {
			return
		}
		n.setWatching(false)
		n.later(w.span(w.plan.lease), func() { n.setWatching(true) })
	})
}

// watchAll begins all watches again, for the calm.
func (w *world) watchAll() {
	for _, n := range w.nodes {
		if n.alive {
			n.setWatching(true)
		}
	}
}

func (n *node) setWatching(on bool) {
	if n.blind == !on {
		return
	}
	n.blind = !on
	n.w.tracef(n, "watches: %v", on)
	n.m.Watching(on)
	n.pump()
}
