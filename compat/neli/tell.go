package neli

// tell calls the barrier with all events that are due, without the lock, and never from two
// goroutines at once.
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
	n.pulse(-1) // while the barrier runs, no Pulse counts as under way
	n.mu.Unlock()
	defer n.change(func() { n.barrierReturned(h) }) // also if the barrier panics
	n.log.Info("neli: "+e.String(), "term", h.term.Token())
	n.barrier(e)
	return true
}

// due returns the next event for the barrier, or nil. LeaderRevoked waits for the tasks that are
// running; LeaderFenced, which stops them, does not. A term that ends before LeaderAcquired was
// reported causes no event.
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

// barrierReturned records that the barrier has returned.
func (n *elector) barrierReturned(h *holding) {
	n.calling = false
	n.pulse(1)
	if h.stage == acquiring {
		h.stage = leading
		return
	}
	n.held = nil
	close(h.over)
}
