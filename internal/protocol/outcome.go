package protocol

import (
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
)

// ReadDone reports the answer to a read: the cell if Applied, or the error.
func (m *Machine) ReadDone(now clock.Reading, id uint64, c Cell, out Outcome, err error) {
	m.expire(now)
	op := m.takeAnswer(now, id)
	if op == nil {
		return
	}
	if out != Applied {
		m.trouble(now, out, err)
		return
	}
	m.view.answered = true
	c = Credible(c)
	m.dither = uint8(m.cfg.Rand())
	if m.overtaken(op, &c) {
		m.view.suspect = true
		return
	}
	m.noteSilence(now)
	m.observe(now, c, sight{answer, op.sent.Instant})
	m.view.rumor = nil // the answer shows whether it was true
	m.reconcile(now, &c)
	if op.doubted {
		m.view.suspect = true // the cell may have changed while this answer was on its way
	}
}

// overtaken reports whether a push that came during the read shows a later state than its answer.
func (m *Machine) overtaken(op *Op, c *Cell) bool {
	return op.pushes != m.view.pushes && c.Version != m.view.cell.Version && !c.after(&m.view.cell)
}

// WriteDone reports the answer to a write: the new version if Applied, or the error.
func (m *Machine) WriteDone(now clock.Reading, id uint64, v driver.Version, out Outcome, err error) {
	m.expire(now)
	op := m.takeAnswer(now, id)
	if op == nil {
		return
	}
	switch out {
	case Applied:
		m.applied(now, op, v)
	case Conflict:
		m.conflict(now)
	default:
		m.trouble(now, out, err)
	}
}

func (m *Machine) applied(now clock.Reading, op *Op, v driver.Version) {
	a, ok := m.match(op.nonce)
	if !ok {
		return // a push or a read showed it before
	}
	m.noteSilence(now)
	c := Cell{Kind: Valid, Version: v, Record: op.Record}
	if op.pushes == m.view.pushes || c.after(&m.view.cell) {
		m.view.learn(now, c, sight{ownWrite, op.sent.Instant}, m.incarnation)
	}
	m.confirm(now, a)
	m.view.suspect = op.doubted || op.unwatched && m.phase != Leading
	m.lease.hasten = m.lease.hasten || op.unwatched && m.phase == Leading
}

// conflict handles a refused write: another writer, or an earlier delivery of the same write, has
// changed the version (L7). Only a read can tell which. After the first conflict the read comes at
// once; after a second in a row it waits as after a failure, so that two writers can never loop.
func (m *Machine) conflict(now clock.Reading) {
	m.view.suspect = true
	if m.conflicted {
		m.failures, m.failedAt = m.failures+1, now.Instant
	}
	m.conflicted = true
}

// trouble handles an answer that is neither Applied nor Conflict, and a timeout. The effect of a
// write is unknown until the cell is read again. A member that is denied before any read was
// answered becomes Idle.
func (m *Machine) trouble(now clock.Reading, out Outcome, err error) {
	m.fail(now)
	if out == Denied && !m.view.answered {
		m.phase, m.cause, m.observing = Idle, err, false
		m.tell(Transition{What: Refused, Cause: err})
		return
	}
	m.tell(Transition{What: Trouble, Cause: err})
}

func (m *Machine) fail(now clock.Reading) {
	m.health.well = false
	m.failures, m.failedAt = m.failures+1, now.Instant
	m.view.suspect = true
}

// takeAnswer takes the answer to the operation in flight and returns this operation. It returns nil
// for an answer to any other operation, or one that comes too late.
func (m *Machine) takeAnswer(now clock.Reading, id uint64) *Op {
	if !m.Current(id) || m.giveUp(now) {
		return nil
	}
	op := m.op
	m.op = nil
	return op
}

// observe takes a cell into view and raises the alarms that it causes.
func (m *Machine) observe(now clock.Reading, c Cell, s sight) {
	m.health.recover(now)
	older := m.view.older(&c)
	emptied := m.view.held() && (c.Kind == Absent || c.vacant())
	fresh := m.view.learn(now, c, s, m.incarnation)
	if fresh && (m.view.change == remade || m.view.trust == unproven || older || emptied) {
		m.historyChanged = MomentOf(now.Wall)
	}
	if fresh && m.view.change == remade {
		m.voidPending(now)
		m.tell(Transition{What: Alarm, Cause: ErrRemade})
	}
	if fresh && c.doubt != nil {
		m.tell(Transition{What: Alarm, Cause: c.doubt})
	}
	switch {
	case !fresh:
	case c.Kind == Foreign:
		m.tell(Transition{What: Alarm, Cause: Because(ErrForeign, c.Problem)})
	case c.Kind == Malformed:
		m.tell(Transition{What: Alarm, Cause: Because(ErrMalformed, c.Problem)})
	case older:
		m.tell(Transition{What: Alarm, Cause: ErrRegressed})
	case emptied && m.view.change != remade:
		m.tell(Transition{What: Alarm, Cause: Because(ErrVanished, c.Problem)})
	}
}

// voidPending forgets pending writes to a store that was recreated since. If one of them arrives in
// the new history, it does not prove that this member leads. A leader's deadline remains the
// earliest of all of them (L1).
func (m *Machine) voidPending(now clock.Reading) {
	for i := range m.pending {
		if p := m.pending[i].promise; m.phase == Leading && p.remaining(now) < m.lease.held.remaining(now) {
			m.lease.held = p
		}
	}
	m.pending, m.lease.absence = nil, ""
}

// reconcile settles the pending writes by the cell that was seen.
func (m *Machine) reconcile(now clock.Reading, c *Cell) {
	if a, ok := m.match(c.Record.Nonce); ok && c.Kind == Valid {
		m.confirm(now, a)
		return
	}
	m.view.suspect = false
	switch m.phase {
	case Leading:
		m.stepDownIfLost(c)
	case Candidate:
		m.forget(c)
		if !m.mine() {
			m.claims = 0
		}
	default:
		m.endFailures()
	}
}

// forget drops a candidate's pending writes if they expect another state than the present one. All
// of them expect the same state, because takeOver calls forget before it writes. Unless the read
// was stale, dropped writes can no longer be applied, or were applied and then replaced. After a
// stale read, or over a value that was edited under its version, one of them may still be applied:
// the cell then names this member, which has no open term.
func (m *Machine) forget(present *Cell) {
	if len(m.pending) > 0 && !m.pending[0].expects(present) {
		m.pending = nil
	}
	m.endFailures()
}

// endFailures ends the series of failures, unless a write is pending: a store that answers reads
// but refuses writes has not recovered.
func (m *Machine) endFailures() {
	if len(m.pending) == 0 {
		m.failures, m.conflicted = 0, false
	}
}

// match finds a pending write by its nonce.
func (m *Machine) match(nonce string) (pendingWrite, bool) {
	for i := range m.pending {
		if m.pending[i].nonce == nonce {
			return m.pending[i], true
		}
	}
	return pendingWrite{}, false
}

// confirm records that a pending write is or was in the cell. So every other pending write was
// replaced by it or can never be applied.
func (m *Machine) confirm(now clock.Reading, a pendingWrite) {
	m.pending = nil
	m.failures, m.conflicted, m.view.suspect = 0, false, false
	switch {
	case a.purpose == claim && m.phase == Candidate && a.remaining(now) > 0:
		m.win(now, a)
	case a.purpose == renew && m.phase == Leading:
		m.lease.held = a.promise
		m.lease.moves++
	case a.purpose == release && m.phase == Releasing:
		m.endRelease(now, true)
	}
}

func (m *Machine) win(now clock.Reading, a pendingWrite) {
	m.phase, m.cause, m.claims = Leading, nil, 0
	if m.nomination == declined {
		m.nomination = nominee
	}
	m.view.trust = sound // a state that was not sound was waited out
	m.lease = lease{term: a.term, seq: 1, held: a.promise, wonAt: now.Instant, nominated: a.nominated, hasten: m.lease.hasten}
}

// Seen reports a pushed entry. It is a hint (L13): it may show a newer state or cause a read. It
// never ends a lease.
func (m *Machine) Seen(now clock.Reading, c Cell) {
	m.expire(now)
	if c.Unverified {
		m.unverified(now, &c)
		return
	}
	if m.cfg.Hearsay {
		c.Ceiling = max(c.Ceiling, m.view.cell.ceiling()) // only the store knows the ceiling
		if !m.attested(&c) {
			m.doubt()
			return
		}
	}
	c = Credible(c)
	m.view.highestPushedTerm = max(m.view.highestPushedTerm, c.Record.Term)
	m.view.written = m.view.written || !c.Pristine
	m.noteSilence(now)
	if !m.view.known() {
		m.doubt() // the first read may be older
		return
	}
	known := c.Version == m.view.cell.Version
	if m.view.otherEra(&c) || known && !c.sameTerm(&m.view.cell) || known && c.Record.Seq > m.view.cell.Record.Seq {
		m.doubt() // versions begin again: this one may be of another write (L3a)
		return
	}
	if known {
		return
	}
	if a, ok := m.match(c.Record.Nonce); ok && c.Kind == Valid {
		m.seenOwn(now, a, c)
		return
	}
	switch {
	case c.Kind != Valid || m.view.cell.Kind != Valid:
		m.doubt()
	case c.predecessor() && !m.view.cell.predecessor():
		m.doubt() // it has no terms that could show which one is later
	case !c.after(&m.view.cell):
		// An old entry that comes late.
	case m.view.older(&c) && !c.sameTerm(&m.view.cell):
		// A late entry of a term whose record has vanished, or a state that was put back.
		m.doubt()
	case m.phase == Leading && c.stamp() != m.view.cell.stamp():
		m.doubt()
	default:
		m.accept(now, c)
		m.reconcile(now, &c)
	}
}

// seenOwn handles the push of a pending write. If the view does not show the state that the write
// replaced, that state and the write are older than the view, or nothing shows which is later.
func (m *Machine) seenOwn(now clock.Reading, a pendingWrite, c Cell) {
	next := a.expects(&m.view.cell)
	if next {
		m.accept(now, c)
	}
	m.confirm(now, a)
	if !next {
		m.doubt()
	}
}

// noteSilence notes the first sight of the cell, and the end of a silence that is longer than a
// heartbeat. This process may have been stopped before. Then pushes that waited may come now, even
// after the answer to a read.
func (m *Machine) noteSilence(now clock.Reading) {
	if !m.view.known() || now.LeaderSince(m.view.heard) > m.cfg.heartbeat() {
		m.view.woken, m.view.woke = true, now.Instant
	}
}

// wokeLately reports whether the cell was first seen, or a long silence ended, at most a heartbeat
// ago. Then a push may be as old as what was before.
func (m *Machine) wokeLately(now clock.Reading) bool {
	return m.view.woken && now.FollowerSince(m.view.woke) <= m.cfg.heartbeat()
}

// attested reports whether a peer's push may count. The peer has proved only that it is the holder
// of the record that was read, so the term, the lease and the drift bound must be those that the
// store has shown. A record of this member comes from this process, and counts.
func (m *Machine) attested(c *Cell) bool {
	r, shown := &c.Record, &m.view.cell.Record
	if r.Incarnation == m.incarnation {
		return true
	}
	return m.view.known() && c.Kind == Valid && c.sameTerm(&m.view.cell) && r.Lease == shown.Lease && r.Drift == shown.Drift
}

// doubt causes a read. If an operation is in flight, the read follows it, because the operation may
// be too early to show the change.
func (m *Machine) doubt() {
	m.view.suspect = true
	if m.op != nil {
		m.op.doubted = true
	}
}

// accept takes a pushed cell into view.
func (m *Machine) accept(now clock.Reading, c Cell) {
	m.view.pushes++
	s := sight{push, now.Instant}
	if m.wokeLately(now) {
		s.by = latePush
	}
	shown := m.view.highSeq
	m.observe(now, c, s)
	if m.cfg.Hearsay && c.Record.Incarnation != m.incarnation {
		// A record that the store never had must not make the store's next state look old.
		m.view.highSeq = shown
	}
}
