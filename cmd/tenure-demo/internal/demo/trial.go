package demo

// trial is one way to disturb a leader.
type trial func(d *director, leader *process)

// trials returns those that are used in turn.
func trials() []trial {
	all := []trial{(*director).killLeader, (*director).stopLeader}
	if canPause {
		all = []trial{(*director).killLeader, (*director).pauseLeader, (*director).stopLeader}
	}
	return all
}

func (d *director) killLeader(p *process) {
	d.note(deed{do: doKill, id: p.id, term: d.ledger.term})
	p.ending = true
	p.kill()
}

// pauseLeader freezes the leader for two leases: long enough for another candidate to lead when it
// wakes.
func (d *director) pauseLeader(p *process) {
	d.note(deed{do: doPause, id: p.id, term: d.ledger.term})
	p.paused = true
	p.pause()
	d.after(2*d.options.Lease, func() { d.resume(p) })
}

func (d *director) resume(p *process) {
	if d.crew[p.id] != p || d.stopping {
		return
	}
	d.note(deed{do: doResume, id: p.id})
	p.paused = false
	p.resume()
}

func (d *director) stopLeader(p *process) {
	d.note(deed{do: doStop, id: p.id, term: d.ledger.term})
	p.ending = true
	p.askToEnd()
}

// tick makes the next trial due. The trial waits until there is a leader that has acted: to disturb
// another one would show nothing.
func (d *director) tick() {
	d.due = true
	d.after(d.options.CrashEvery, d.tick)
}

// attempt runs the next trial if it is due and there is a leader to disturb.
func (d *director) attempt() {
	if !d.due || d.stopping {
		return
	}
	if p := d.leader(); p != nil {
		d.due = false
		d.trials[0](d, p)
		d.trials = append(d.trials[1:], d.trials[0])
	}
}

// leader returns the process of the leader, or nil if it cannot be disturbed now.
func (d *director) leader() *process {
	p := d.crew[d.ledger.leader]
	if p == nil || p.paused || p.ending || !d.ledger.leads() {
		return nil
	}
	if _, acted := d.acts.lastOf(d.ledger.term); !acted {
		return nil
	}
	return p
}
