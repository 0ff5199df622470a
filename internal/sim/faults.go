package main

import (
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// schedule arranges the faults at random times until the calm at the end.
func (w *world) schedule() {
	p := &w.plan
	w.every(true, 2*time.Minute, func() { w.drift(w.anyone()) })
	w.every(p.step, 3*p.lease, func() { w.step(w.victim()) })
	w.every(p.crash, 5*p.lease, func() { w.crash(w.anyone()) })
	w.every(p.crash, 10*p.lease, func() { w.crashLeader() })
	w.every(p.pause, 4*p.lease, func() { w.pause(w.victim()) })
	w.every(p.suspend, 8*p.lease, func() { w.suspend(w.victim(), false) })
	w.every(p.naps(), 3*p.lease, func() { w.nap(w.victim()) })
	w.every(p.freeze, 20*p.lease, func() { w.suspend(w.victim(), true) })
	w.every(p.cut, 5*p.lease, func() { w.cut(w.victim()) })
	w.every(p.cut, 30*p.lease, func() { w.outageUntil = w.now + w.span(2*p.lease) })
	w.every(p.erase, 6*p.lease, w.erase)
	w.every(p.erase, p.lease/10, w.orphan)
	w.every(p.foreign, 30*p.lease, w.deface)
	w.every(p.broken, 30*p.lease, w.breakRecord)
	w.every(p.rollback, 5*p.lease, w.rollback)
	w.every(p.spam, p.lease/2, func() { w.store.request(w.someName()) })
	w.every(p.offers, 2*p.lease, w.offer)
	w.every(p.mixed, 2*p.lease, func() { w.reconfigure(w.victim(), w.someLease()) })
	w.every(p.mixed, 8*p.lease, w.shorten)
	w.every(p.nominated, 5*p.lease, w.nominate)
	w.every(p.fickle, 4*p.lease, w.makeUnfit)
	w.every(p.wreck, 15*p.lease, w.wreck)
	w.every(p.resets, 2*p.lease, w.reset)
	w.every(p.defaced(), 8*p.lease, w.deface)
	w.every(p.bounds, 3*p.lease, w.strain)
	w.every(p.forges, 2*p.lease, w.forge)
	w.every(p.recurs(), 4*p.lease, func() { w.ambush(w.victim()) })
	w.every(p.promotes, 6*p.lease, w.recur)
	w.every(p.farClock, 10*p.lease, w.store.misclock)
	w.every(p.rumors, p.lease/4, w.gossip)
	w.every(p.flickers, 2*p.lease, func() { w.flicker(w.victim()) })
	w.every(p.withdraws, 4*p.lease, func() { w.withdraw(w.anyone()) })
}

// every repeats a fault at random intervals with the given mean.
func (w *world) every(on bool, mean time.Duration, do func()) {
	if !on {
		return
	}
	var again func()
	again = func() {
		if w.calm {
			return
		}
		do()
		w.queue.add(w.now+w.span(2*mean), again)
	}
	w.queue.add(w.now+w.span(2*mean), again)
}

func (w *world) anyone() *node { return w.nodes[w.rng.IntN(len(w.nodes))] }

func (w *world) someName() string {
	if w.chance(0.3) {
		return ""
	}
	return w.anyone().name
}

// victim returns the leader most often: there faults matter most.
func (w *world) victim() *node {
	if n := w.leading(); n != nil && w.chance(0.7) {
		return n
	}
	return w.anyone()
}

func (w *world) leading() *node {
	for _, n := range w.nodes {
		if n.alive && n.m.Holds(n.now()) {
			return n
		}
	}
	return nil
}

func (w *world) crashLeader() {
	if n := w.leading(); n != nil {
		w.crash(n)
	}
}

func (w *world) crash(n *node) {
	if !n.alive {
		return
	}
	n.kill()
	w.queue.add(w.now+w.span(w.plan.lease), n.boot)
}

func (w *world) drift(n *node) {
	if !n.proc.clocks.asleep {
		w.retune(n.proc)
		w.rearm(n.proc)
	}
}

// rearm sets the timers again: they ring by the monotonic clock, whose rate has changed. One that
// is already due rings as before.
func (w *world) rearm(p *process) {
	for _, n := range w.nodes {
		if n.proc == p && n.alive && n.wake > n.now().Mono {
			n.arm()
		}
	}
}

// step sets a wall clock that stands in for the clock that counts suspended time. If such a clock
// is set back just before the machine sleeps, it hides the sleep, and no member can detect that. So
// where machines sleep, the clock is only set forward.
func (w *world) step(n *node) {
	d := w.span(2 * w.plan.lease)
	if !w.plan.suspend && w.chance(0.5) {
		d = -d
	}
	w.tracef(n, "has its wall clock set by %v", d)
	n.proc.clocks.step(w.now, d)
	for _, o := range w.nodes {
		if o.proc == n.proc {
			o.hinder(w.now) // a request may seem to take longer
		}
	}
}

func (w *world) pause(n *node) {
	n.proc.stillUntil = max(n.proc.stillUntil, w.now+w.span(3*w.plan.lease))
	w.tracef(n, "is stopped until %v", n.proc.stillUntil)
	w.queue.add(n.proc.stillUntil, func() { w.resume(n.proc, false) })
}

func (w *world) resume(p *process, suspended bool) {
	for _, n := range w.nodes {
		if n.proc == p {
			n.resume(suspended)
		}
	}
}

func (w *world) suspend(n *node, frozen bool) { w.sleep(n, 3*w.plan.lease, frozen) }

// sleep stops the machine: its monotonic clocks stand still. If it is frozen from outside, the
// clock that counts suspended time stands still too.
func (w *world) sleep(n *node, most time.Duration, frozen bool) {
	p, c := n.proc, n.proc.clocks
	if p.stillUntil > w.now {
		return
	}
	boot := c.raw
	p.stillUntil = w.now + w.span(most)
	if frozen {
		boot = 0
		p.excusedUntil = p.stillUntil + w.longest()
	}
	w.tracef(n, "is suspended until %v, frozen %v", p.stillUntil, frozen)
	mono, raw := c.mono, c.raw
	c.set(w.now, 0.0000001, 0.0000001, boot)
	c.asleep = true
	w.queue.add(p.stillUntil, func() {
		c.set(w.now, mono, raw, mono)
		c.asleep = false
		w.resume(p, true)
		w.rearm(p)
	})
}

// longest returns the true time after which every lease that a member believes in now is over.
func (w *world) longest() time.Duration {
	lease := w.plan.lease
	if w.plan.mixed {
		lease = lease * 3 / 2
	}
	off := w.plan.widest()
	slower := 1.0
	if w.plan.bounds { // a member that does not know the holder's bound waits longer by its own
		slower += off
	}
	return time.Duration(float64(lease) * slower / (1 - w.cfg.Drift*off))
}

// nap cuts a member off from the store, slows its clock, and suspends its machine for a short time.
// The time awake and the time asleep together are longer than its lease.
func (w *world) nap(n *node) {
	if c := n.proc.clocks; !c.asleep {
		slow := c.raw * (1 - slew)
		c.set(w.now, slow, c.raw, slow)
		w.rearm(n.proc)
	}
	n.proc.cutUntil = w.now + w.plan.lease*3/2
	w.tracef(n, "is cut off until %v", n.proc.cutUntil)
	w.queue.add(w.now+w.plan.lease/2+w.span(w.plan.lease/2), func() { w.sleep(n, w.plan.lease/2, false) })
}

func (w *world) cut(n *node) {
	n.proc.cutUntil = w.now + w.span(3*w.plan.lease)
	w.tracef(n, "is cut off until %v", n.proc.cutUntil)
}

// erase purges or deletes the record. Sometimes a member restarts just then.
func (w *world) erase() {
	switch w.rng.IntN(3) {
	case 0:
		w.tracef(nil, "the record is purged")
		w.store.purge()
	default:
		w.tracef(nil, "the record is deleted")
		w.store.put(absent)
	}
	if w.chance(0.5) {
		w.crash(w.anyone())
	}
	if w.chance(0.3) {
		w.queue.add(w.now+w.span(w.plan.lease*3/2), w.store.purge)
	}
}

// orphan deletes the record of a leader just when the work of a former one ends. The absence that
// the former leader then finds is not the one that it may replace by a released record.
func (w *world) orphan() {
	leader := w.leading()
	for _, n := range w.nodes {
		if leader == nil || n == leader || !n.alive || !n.inside || n.m.Phase() != protocol.Ended || w.chance(0.2) {
			continue
		}
		w.tracef(n, "is about to finish the work of term %d, and the record is deleted", n.term)
		w.store.put(absent)
		term := n.term
		n.later(w.span(w.plan.lease/2), func() { n.leave(term) })
	}
}

func (w *world) deface() {
	w.tracef(nil, "another program writes foreign bytes")
	w.blind()
	w.store.put(foreign)
	w.queue.add(w.now+w.span(3*w.plan.lease), w.repair)
}

// blind may cut the leader off, so that it does not see what happens to its record.
func (w *world) blind() {
	if n := w.leading(); n != nil && w.more.chance(0.5) {
		n.proc.cutUntil = w.now + w.more.span(3*w.plan.lease)
		w.tracef(n, "is cut off until %v", n.proc.cutUntil)
	}
}

// repair resets the election, as an operator does who knows that no member can lead.
func (w *world) repair() {
	c := &w.store.cell
	if c.Kind == protocol.Foreign || c.Kind == protocol.Malformed && c.Record.Lease == record.MaxLease {
		w.reset()
		w.queue.add(w.now+3*w.plan.lease, w.repair) // the read may have been stale
	}
}

// repairLater lets the operator come if an old state that is back has no record.
func (w *world) repairLater() {
	if k := w.store.cell.Kind; k == protocol.Foreign || k == protocol.Malformed {
		w.queue.add(w.now+w.extra.span(3*w.plan.lease), w.repair)
	}
}

// wreck damages the record of a leader. The length of its lease is still readable.
func (w *world) wreck() {
	was := &w.store.cell.Record
	if !was.Held() {
		return
	}
	w.tracef(nil, "the record of term %d is damaged", was.Term)
	w.blind()
	w.garble()
	w.queue.add(w.now+w.span(w.plan.lease), w.reset)
	if w.chance(0.5) {
		w.replace()
	}
}

// replace restarts all members but the leader, so that no possible successor knows the past.
func (w *world) replace() {
	leader := w.leading()
	for _, n := range w.nodes {
		if n != leader {
			w.crash(n)
		}
	}
}

func (w *world) breakRecord() {
	w.tracef(nil, "another program writes a malformed record")
	c := malformed
	c.Record.Nonce = w.now.String()
	c.Record.Lease = (w.span(w.plan.lease) + time.Millisecond).Truncate(time.Millisecond)
	if w.plan.resets && w.more.chance(0.5) {
		c.Record.Lease = record.MaxLease // the lease that counts for one that cannot be read
	}
	w.store.put(c)
}

func (w *world) rollback() {
	if len(w.store.history) == 0 {
		return
	}
	c := w.store.history[w.rng.IntN(len(w.store.history))].cell
	if w.plan.pristine && w.chance(0.3) {
		c = protocol.Cell{Pristine: true}
	}
	w.putBack(c)
}

func (w *world) putBack(c protocol.Cell) {
	if w.now < max(w.check.amnesty, w.check.fragile) {
		return // two old states within a lease can give a leader its old term back permanently
	}
	w.tracef(nil, "an older state is put back: term %d, pristine %v", c.Record.Term, c.Pristine)
	w.check.forgive(w.now + w.longest())
	w.hinderAll()
	defer w.check.lapse()()
	w.store.put(c)
	w.repairLater()
}

// shorten gives the leader a shorter lease, and only the followers see it.
func (w *world) shorten() {
	n := w.leading()
	if n == nil {
		return
	}
	life := n.lives
	w.reconfigure(n, w.plan.lease*3/2)
	w.queue.add(w.now+w.plan.lease, func() {
		if n.lives == life {
			w.reconfigure(n, w.plan.lease/2)
			n.severing = n.alive
		}
	})
}

// reconfigure gives a running member another lease.
func (w *world) reconfigure(n *node, lease time.Duration) {
	if n.alive {
		n.run(n.lives, func() {
			cfg := w.configure(n, lease)
			w.tracef(n, "now has a lease of %v", cfg.Lease)
			n.cfg = cfg
			n.m.Reconfigure(&cfg)
			n.attempts.flight.release = min(n.attempts.flight.release, cfg.ReleaseWithin()/2)
			n.pump() // what is due already is judged by the timer that was set before
			// With a longer lease the timers do not get later.
			n.late = min(n.late, protocol.TimerLateness(cfg.Lease))
			n.arm()
		})
	}
}

func (w *world) withdraw(n *node) {
	if n.alive {
		n.run(n.lives, func() {
			n.m.Withdraw(n.now())
			n.pump()
		})
	}
}

// Where members have clocks of different quality, the worst case is a leader whose clock runs as
// slow as it may, and followers whose clocks run as fast as theirs may.

// strain sets such clocks. The leader is cut off from the store as soon as it has renewed, and at
// times loses its record too.
func (w *world) strain() {
	leader := w.leading()
	if leader == nil {
		return
	}
	for _, n := range w.nodes {
		if p := n.proc; !p.clocks.asleep {
			off := w.cfg.Drift * p.bound
			if p == leader.proc {
				off = -off
			}
			p.clocks.set(w.now, 1+off, 1+off, 1+off)
			w.rearm(p)
		}
	}
	w.tracef(leader, "has the slowest clock, and will be cut off")
	leader.straining = true
}

// strained is called with the outcome of each write of n.
func (n *node) strained(applied bool) {
	w := n.w
	if !n.straining || !applied || w.calm {
		return
	}
	n.straining = false
	// After this pause the store's clock shows a later time.
	w.queue.add(w.now+2*w.plan.latency+2*time.Millisecond, func() {
		if !w.calm {
			n.proc.cutUntil = w.now + 2*w.plan.lease
			w.tracef(n, "is cut off until %v", n.proc.cutUntil)
			w.damage()
		}
	})
}

// garble damages a held record. The length of its lease is still readable.
func (w *world) garble() {
	if was := &w.store.cell.Record; was.Held() {
		c := malformed
		c.Record = record.Record{Lease: was.Lease, Term: was.Term, Nonce: was.Nonce}
		w.store.put(c)
	}
}

// restore puts back the record of an earlier holder, if there is one.
func (w *world) restore() {
	s := w.store
	for _, old := range s.history {
		if c := old.cell; c.Kind == protocol.Valid && c.Record.Held() && c.Record.Incarnation != s.cell.Record.Incarnation {
			w.putBack(c)
			return
		}
	}
	w.rollback()
}

// damage applies one of this run's faults to records, or none.
func (w *world) damage() {
	p := &w.plan
	var some []func()
	for _, f := range []struct {
		on bool
		do func()
	}{
		{true, func() {}}, {p.erase, func() { w.store.put(absent) }}, {p.wreck, w.garble}, {p.wreck, w.garble},
		{p.rollback, w.restore}, {p.rollback, w.restore}, {p.rollback, w.restore},
		{p.foreign && p.resets, func() { w.store.put(foreign); w.queue.add(w.now+2*time.Millisecond, w.reset) }},
	} {
		if f.on {
			some = append(some, f.do)
		}
	}
	some[w.extra.rng.IntN(len(some))]()
}

// The operator resets an election whose record is damaged or foreign.

// reset reads the cell, and replaces foreign bytes or a malformed record. The request may be
// delivered late, or twice.
func (w *world) reset() {
	seen := w.store.read()
	operator, lease := w.operator()
	r, ok := operator.Vacate(seen)
	if !ok {
		return
	}
	late := time.Duration(0)
	if w.plan.slow && !w.calm && w.more.chance(0.5) {
		late = w.more.span(2 * w.plan.lease)
	}
	number := w.store.life.number
	deliver := func() {
		// An operator's request does not reach a later life of the store (docs/guarantees.md).
		if number == w.store.life.number {
			w.store.reset(seen.Version, r, lease)
		}
	}
	w.queue.add(w.now+late, deliver)
	if w.plan.replay && !w.calm && w.more.chance(0.5) {
		w.queue.add(w.now+late+w.more.span(2*w.plan.lease), deliver)
	}
}

// operator returns the machine that resets, usually one that has seen nothing of the election. No
// leader may have a longer lease than the one returned, unless the damaged cell shows it.
func (w *world) operator() (m *protocol.Machine, lease time.Duration) {
	n := w.anyoneMore()
	if !w.plan.mixed && n.alive && w.more.chance(0.3) {
		return &n.m.Machine, n.cfg.Lease
	}
	lease = w.plan.lease
	switch {
	case w.plan.mixed && w.plan.foreign:
		lease = lease * 3 / 2
	case w.plan.mixed: // a damaged record shows its lease
		lease /= 2
	}
	lease = lease.Truncate(time.Millisecond)
	return protocol.New(&protocol.Config{Lease: lease, Rand: w.more.rng.Uint64}, ""), lease
}

func (w *world) anyoneMore() *node { return w.nodes[w.more.rng.IntN(len(w.nodes))] }

// reset is one request of the operator. No leader may have a longer lease than this one.
func (s *store) reset(prev driver.Version, r record.Record, lease time.Duration) {
	if prev != s.cell.Version {
		return
	}
	s.w.check.resets(&s.cell, &r, lease)
	value, err := record.Encode(r)
	if err == nil {
		r, err = record.Decode(value)
	}
	if err != nil {
		s.w.check.failf("the election cannot be reset: %v", err)
		return
	}
	s.w.tracef(nil, "the operator resets the election")
	if s.w.plan.replay && s.cell.Kind == protocol.Foreign {
		s.again = func() {
			s.put(foreign)
			s.reset(prev, r, lease)
		}
		s.often = 0.5
	}
	s.seq++
	s.place(protocol.Cell{Kind: protocol.Valid, Record: r, Version: s.version(&r)})
}

// resets checks that no valid record is reset. What can be read of a damaged record counts: its
// term, and its lease if that is longer than the operator's.
func (c *check) resets(old *protocol.Cell, r *record.Record, lease time.Duration) {
	was := &old.Record
	if old.Kind == protocol.Malformed && was.Lease < record.MaxLease {
		lease = max(lease, was.Lease)
	}
	switch {
	case old.Kind != protocol.Foreign && old.Kind != protocol.Malformed:
		c.failf("a valid record of term %d is reset", was.Term)
	case r.Lease < lease:
		c.failf("a reset shows a lease of %v, though a leader may have one of %v", r.Lease, lease)
	case r.Term < was.Term:
		c.failf("a reset goes back to term %d from term %d", r.Term, was.Term)
	}
}
