package neli

// tell calls the barrier with all events that are due. No other goroutine does at the same time,
// and no lock is held.
func (n *elector) tell() {
	for n.tellOne() {
	}
}

func (n *elector) tellOne() bool {
	n.mu.Lock()
	h, e := n.held, n.due()
	if e == nil {
		n.mu.Unlock()
		return false
	}
	n.calling = true
	n.pulse(-1) // a program that is busy with news does not pulse
	n.mu.Unlock()
	defer n.change(func() { n.told(h) }) // also if the barrier panics
	n.log.Info("neli: "+e.String(), "term", h.term.Token())
	n.barrier(e)
	return true
}

// due returns the event for the barrier now, if there is one. LeaderRevoked waits for the tasks
// that are running; LeaderFenced, which stops them, does not. A term that ends before the program
// knew of it causes no event.
func (n *elector) due() Event {
	h := n.held
	switch {
	case h == nil || n.calling:
	case h.stage == won:
		if n.state == Live && !h.asked() {
			h.stage = acquiring
			return LeaderAcquired{}
		}
	case h.term.Err() != nil:
		h.stage = leaving
		return LeaderFenced{}
	case n.working == 0 && (n.state != Live || h.asked()):
		h.stage = leaving
		return LeaderRevoked{}
	}
	return nil
}

// told goes on after the barrier.
func (n *elector) told(h *holding) {
	n.calling = false
	n.pulse(1)
	if h.stage == acquiring {
		h.stage = leading
		return
	}
	n.held = nil
	close(h.over)
}
