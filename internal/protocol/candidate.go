package protocol

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/record"
)

// Because returns an error that wraps both, or the sentinel alone if there is no problem.
func Because(sentinel, problem error) error {
	if problem == nil {
		return sentinel
	}
	return fmt.Errorf("%w: %w", sentinel, problem)
}

// mine reports whether the record in view names this incarnation as its holder.
func (m *Machine) mine() bool {
	return m.view.held() && m.view.cell.Record.Incarnation == m.incarnation
}

// stepCandidate decides for a candidate. A candidate that is no longer eligible withdraws its
// pending claim (L16). Any other requests a hand-over if it has precedence (H2), reads while its
// view is uncertain (L7), waits until the cell may be claimed (L2, L11, L15, H1), reads once more
// (L3a, L13), and takes over.
func (m *Machine) stepCandidate(now clock.Reading, wake *wakeup) *Op {
	if m.ineligible && m.claimPending() {
		m.withdraw(now, true)
		return nil
	}
	m.requestHandOver(now, wake)
	if !m.view.certain() {
		return m.follow(now, wake)
	}
	claimable, ok := m.claimableAt()
	start := byFollower(m.notBefore, 0)
	if !ok || !wake.over(max(claimable.left(now.Instant), start.left(now.Instant))) {
		return m.follow(now, wake)
	}
	if !m.viewAllowsClaim(now, claimable) {
		return m.read(now)
	}
	if op := m.takeOver(now); op != nil {
		return op
	}
	wake.in(m.cfg.Lease) // no term is left
	return m.follow(now, wake)
}

// claimableAt returns when this member may claim the cell, or put a vacant record there; false
// means never. A member that is not the nominee claims later or never.
func (m *Machine) claimableAt() (due, bool) {
	delay, ok := m.claimDelay()
	// A member that is not the nominee releases its own record instead of claiming it.
	if ok && !m.prepares() && !m.mine() {
		var more time.Duration
		more, ok = m.delayForNominee()
		delay += more
	}
	return byFollower(m.view.renewedAt(), delay), ok
}

// claimDelay returns how long after renewedAt the cell may be claimed, by the nominee or, where
// there is none, by any candidate; false means never.
func (m *Machine) claimDelay() (time.Duration, bool) {
	c := &m.view.cell
	switch {
	case c.Kind == Foreign:
		return 0, false
	case c.Kind == Absent:
		return m.delayAfterAbsence(), true
	case c.draft():
		return 0, true
	case m.view.trust != sound:
		// The record may be out of date, even if it is released or this member's own: the holder
		// of a later term may still lead.
		return m.view.expiresAfter(m.cfg), true
	case m.mine():
		// This incarnation's own term is over and its work has stopped (L4). The pause is for a
		// store that changes the bytes it gets: there, this member does not recognize its claims by
		// the nonce, and would claim in a busy loop.
		return m.retryDelay(max(0, m.claims-1)), true
	case c.Kind == Valid && c.Record.Released:
		return m.delayAfterRelease(&c.Record), true
	}
	return m.view.expiresAfter(m.cfg), true
}

// delayAfterAbsence gives a leader whose record vanished the time to put a released record there,
// which saves the wait for a lease.
func (m *Machine) delayAfterAbsence() time.Duration {
	switch {
	case m.view.change != vanished:
		return 0
	case m.allMembersArePushed():
		return m.cfg.HeadStart
	}
	return max(m.cfg.HeadStart, m.cfg.heartbeat()) // the holder sees the absence when it renews
}

// delayAfterRelease orders the claims after a release. The named successor claims at once. All
// others wait for its head start, if one is named, and claim a little apart. The member that
// released is last (H1), even if the named successor is gone.
func (m *Machine) delayAfterRelease(r *record.Record) time.Duration {
	// If this member released, the successor is another member with the same ID.
	if r.Successor == m.cfg.ID && r.Incarnation != m.incarnation {
		return 0
	}
	wait := spread(m.incarnation, r.Term)
	if r.Successor != "" {
		wait += m.headStart()
	}
	if r.Incarnation == m.incarnation {
		wait += m.headStart() + m.delayAfterDeclining()
	}
	return wait
}

// viewAllowsClaim reports whether the view suffices for a claim. The view must be recent, and its
// Floor must belong to this version (L10). After a wait for a lease, the cell must have been read
// since the end of the wait, because silence alone may be a broken watch (L13).
func (m *Machine) viewAllowsClaim(now clock.Reading, claimable due) bool {
	if m.view.source == ownWrite || !m.viewIsRecent(now) {
		return false
	}
	c := &m.view.cell
	if c.Kind == Absent || c.draft() {
		return true
	}
	if m.view.trust == sound && (m.mine() || c.Kind == Valid && c.Record.Released) {
		return true // there is no lease to wait for
	}
	return m.view.source == answer && claimable.left(m.view.asOf) <= 0
}

// viewIsRecent reports whether the version in view was seen at most one attempt ago. Versions recur
// where a store loses, restores or restarts its history, so the member reads again before it
// replaces a version that it saw earlier (L3a). A push may have waited for nearly a heartbeat
// before it came, so its version is recent for a quarter of an attempt only.
func (m *Machine) viewIsRecent(now clock.Reading) bool {
	limit := m.cfg.Attempt()
	switch m.view.source {
	case nowhere, latePush:
		return false
	case push:
		limit /= 4
	}
	return now.LeaderSince(m.view.asOf) <= limit
}

// takeOver claims the cell with a term above all known terms (L10). Where no claim is allowed yet,
// it puts a vacant record there (L11). While another member has precedence, it releases its own
// record instead. It returns nil if no term is left, or if none is safe (unbounded).
func (m *Machine) takeOver(now clock.Reading) *Op {
	c := &m.view.cell
	m.forget(c)
	if m.mine() && !m.claimsAtOnce() {
		m.claims++
		return m.sendRelease(now, c.Record.Term)
	}
	if c.unbounded() {
		m.notBefore = later(now.Instant, m.cfg.Lease) // observe has raised the alarm
		return nil
	}
	known := m.highestKnownTerm(c)
	if last := max(c.Record.Term, m.view.highestSeenTerm()); last > known {
		m.tell(Transition{What: Alarm, Cause: Because(ErrMalformed, c.notCredible("no claim can go on from term", last))})
	}
	if m.prepares() {
		return m.write(now, create, c.Version, record.Record{Term: known, Seq: vacantSeq(c)})
	}
	term := known + 1
	if term > record.MaxTerm {
		m.tell(Transition{What: Alarm, Cause: ErrExhausted})
		m.notBefore = later(now.Instant, m.cfg.Lease)
		return nil
	}
	m.claims++
	return m.write(now, claim, c.Version, m.record(now, term, 1))
}

// prepares reports whether the next write is a vacant record, because no claim is allowed yet.
func (m *Machine) prepares() bool {
	c := &m.view.cell
	return c.draft() || c.Kind == Absent && (!c.Pristine || m.view.written)
}

// vacantSeq returns the sequence number of the vacant record that replaces c.
func vacantSeq(c *Cell) uint64 {
	if c.draft() {
		return 1
	}
	return 0
}

// highestKnownTerm returns the term that a claim must exceed (L10). It leaves out terms without a
// credible successor: claims go on below those.
func (m *Machine) highestKnownTerm(c *Cell) uint64 {
	return max(c.succeeded(c.Record.Term), c.succeeded(m.view.highTerm), c.succeeded(m.view.highestPushedTerm), c.Floor)
}

// record returns a record with this member as the holder.
func (m *Machine) record(now clock.Reading, term, seq uint64) record.Record {
	return record.Record{
		LeaderID: m.cfg.ID, LeaderAddr: m.cfg.Addr, LastUpdated: now.Wall, Term: term, Seq: seq,
		Incarnation: m.incarnation, Priority: m.priority(), Metadata: m.cfg.Metadata,
	}
}
