package main

import "time"

// faults starts the faults of the plan.
func (w *world) faults() {
	p := w.plan
	every := func(on bool, mean time.Duration, do func()) {
		if !on {
			return
		}
		mean *= p.rare
		var again func()
		again = func() {
			do()
			w.after(w.between(mean/4, 2*mean), again)
		}
		w.after(w.between(0, 2*mean), again)
	}
	every(p.crashes, 40*time.Minute, w.crash)
	every(p.pauses, 25*time.Minute, w.pause)
	every(p.handOvers, 30*time.Minute, w.handOver)
	every(p.sleeps, 5*time.Hour, w.sleep)
	every(p.steps, time.Hour, func() { w.any().setClock() })
	every(p.damage != unharmed, 100*time.Minute, w.damage)
	every(p.replan, 8*time.Hour, w.replan)
	every(true, 10*time.Second, w.check.progress)
}

func (w *world) any() *node {
	if w.leader != nil && w.chance(0.6) {
		return w.leader.node
	}
	return w.nodes[w.rand.IntN(len(w.nodes))]
}

// crash ends a process, which starts again a little later without its memory.
func (w *world) crash() {
	w.crashOf(w.any())
}

func (w *world) crashOf(n *node) {
	w.tracef("%s crashes", n.id)
	if w.leader != nil && w.leader.node == n {
		w.expire(0)
	}
	n.stopRun("crash")
	n.life++
	n.down = w.now.Add(w.between(time.Second, time.Minute))
	w.after(n.down.Sub(w.now), n.boot)
}

// pause stops a process for a while. Its clocks go on.
func (w *world) pause() {
	n := w.any()
	d := w.between(0, 3*w.plan.lease)
	if w.chance(0.2) {
		d = w.between(0, 10*time.Minute)
	}
	n.paused = w.now.Add(d)
	w.tracef("%s stands still for %v", n.id, d)
	if t := w.leader; t != nil && t.node == n {
		if d > w.plan.lease/3 {
			w.expire(0)
		}
		w.trouble(d)
	}
}

// handOver asks the leader to finish. It leaves when its run has ended, or at a time limit.
func (w *world) handOver() {
	t := w.leader
	if t == nil || t.asked {
		return
	}
	t.asked, t.askedAt = true, w.now
	w.tracef("%s is asked to finish", t.node.id)
	var leave func()
	limit := w.now.Add(2 * time.Minute)
	leave = func() {
		switch {
		case w.leader != t || !t.deadline.IsZero():
		case w.now.After(limit):
			w.expire(0)
		case t.node.busy() || t.node.passing:
			w.after(time.Second, leave)
		default:
			w.tracef("%s leaves", t.node.id)
			t.deadline, w.free = w.now, w.now
			w.over(t)
		}
	}
	w.after(w.between(0, 5*time.Second), leave)
}

// sleep takes all members away for a while.
func (w *world) sleep() {
	d := w.between(time.Minute, 3*time.Hour)
	w.tracef("all members stand still for %v", d)
	w.expire(d)
	for _, n := range w.nodes {
		if until := w.now.Add(d); until.After(n.paused) {
			n.paused = until
		}
	}
	w.trouble(d)
}

// damage harms the store. The present leader notices within its lease, and no other member leads
// before.
func (w *world) damage() {
	d := w.plan.damage
	w.tracef("the store is damaged: %d", d)
	w.store.harm(d)
	w.check.damaged(d)
	if d == deleted { // of this key alone
		return
	}
	w.expire(w.plan.lease)
	w.free = w.now.Add(w.plan.lease + time.Second)
	if w.plan.falls {
		w.token -= min(w.token-1, uint64(w.rand.IntN(6)))
	}
	at := w.now
	for _, n := range w.nodes {
		if w.plan.crashes && w.chance(0.6) { // an outage of the whole site
			w.crashOf(n)
		}
		life := n.life
		w.after(w.between(0, w.plan.lease/2), func() {
			if n.life == life && n.bornAt.Before(at) { // it has seen the election before
				n.disturbed = n.wall()
			}
		})
	}
	w.trouble(w.plan.lease * 3)
}

// replan changes the schedule of all members, which start again with it.
func (w *world) replan() {
	specs := []string{"*/5 * * * *", "*/20 * * * *", "7 * * * *"}
	w.plan.setSpec(specs[w.rand.IntN(len(specs))])
	w.tracef("the schedule is %s", w.plan.spec)
	w.expire(0)
	for _, n := range w.nodes {
		n.stopRun("restart")
		n.life++
		n.boot()
	}
}
