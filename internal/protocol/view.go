package protocol

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Kind says what a cell holds.
type Kind uint8

// The kinds of cell.
const (
	Absent    Kind = iota // nothing
	Valid                 // a record
	Malformed             // a damaged record, or one whose term is not credible
	Foreign               // other bytes
)

// Cell is one state of the store's cell, decoded.
type Cell struct {
	Kind Kind
	// Pristine: the store proves that nothing was ever written here (driver.Entry.Pristine).
	Pristine bool
	// Unproven: later writes may be missing (driver.Entry.Unproven).
	Unproven bool
	// Unverified: anybody may have pushed this (driver.Entry.Unverified).
	Unverified bool
	Version    driver.Version
	// Floor is an upper bound on every earlier term; 0 if the store vouches for none.
	Floor uint64
	// Ceiling only decides which terms are credible: those below 2^53 and less than 2^40 above the
	// larger of Floor and Ceiling (see ceiling). It is 0 if the store gives none.
	Ceiling uint64
	// Era names the history of the store that this state belongs to; 0 if the store cannot tell.
	Era uint64
	// Record is set for Valid cells. For Malformed cells its Term is the term if that is legible
	// and credible, or 0; its Lease is the lease if that is legible, or MaxLease. For Malformed and
	// Foreign ones its Nonce identifies the bytes, because versions may recur (L3a).
	Record record.Record
	// Problem describes, for people, the defect of a Malformed or Foreign cell, or why an Absent
	// one is absent. In view, a vacant record keeps the Problem of the absence that it replaced.
	Problem error
	// doubt says why the store, or a Floor that is not credible, needs an operator; nil if neither
	// does.
	doubt error
}

// stamp identifies a holder's write. A hand-over request changes the version of a cell and not its
// stamp, so it restarts no timer (L2). The nonce alone identifies an honest write, but a record
// that a person edited may keep its nonce.
type stamp struct {
	incarnation string
	term        uint64
	nonce       string
	version     driver.Version // only if the cell is not Valid
}

func (c *Cell) stamp() stamp {
	if c.Kind != Valid {
		return stamp{version: c.Version, nonce: "kind " + strconv.Itoa(int(c.Kind)) + c.Record.Nonce, term: c.Record.Term}
	}
	return stamp{incarnation: c.Record.Incarnation, term: c.Record.Term, nonce: c.Record.Nonce}
}

// draft reports whether c is the first vacant record in an empty cell or over damage. If the cell
// is empty again after a later term, a repeated write may put the draft back. The copy has the same
// nonce and, where versions are made from the content, the same version. A member that waited for
// the original could then claim the copy. So members do not wait for a draft. They replace it by a
// second vacant record and wait for that one. Its write expects the draft, so a copy of this write
// applies only after a copy of the draft.
func (c *Cell) draft() bool { return c.vacant() && c.Record.Seq == 0 }

// vacant reports whether c is a record without a holder, put in an empty cell or over damage.
func (c *Cell) vacant() bool {
	return c.Kind == Valid && c.Record.LeaderID == "" && !c.Record.Released
}

// illegible reports whether c is a malformed record whose lease cannot be read, or is MaxLease,
// which is treated the same. Members wait for MaxLease. That lease does not enter the longest lease
// seen, the time that the function silence returns, or the record that an operator puts over the
// malformed one (Vacate).
func (c *Cell) illegible() bool { return c.Kind == Malformed && c.Record.Lease >= record.MaxLease }

// sameTerm reports whether c and d are of one holder's term.
func (c *Cell) sameTerm(d *Cell) bool {
	return c.Record.Incarnation == d.Record.Incarnation && c.Record.Term == d.Record.Term
}

// predecessor reports whether c is a record of an older library that has no terms, such as those
// under compat. Members wait for its lease as for any other, and claim above the known terms.
func (c *Cell) predecessor() bool {
	return c.Kind == Valid && c.Record.LeaderID != "" && c.Record.Term == 0
}

// after reports whether c is a later state than d: by term, then sequence number, then floor. It
// orders pushed entries, which may come late; versions are opaque and have no order.
func (c *Cell) after(d *Cell) bool {
	if c.Record.Term != d.Record.Term {
		return c.Record.Term > d.Record.Term
	}
	if c.Record.Seq != d.Record.Seq {
		return c.Record.Seq > d.Record.Seq
	}
	return c.Floor > d.Floor
}

// sight says how a version came into view, and from which time its age counts. Versions may recur,
// so the member reads again before it replaces a version that it saw too long ago (L3a).
type sight struct {
	by   source
	asOf clock.Instant
}

// source says where a version was seen.
type source uint8

const (
	nowhere source = iota // nothing is known of the cell
	// latePush: a push that may have waited for as long as this process was stopped. Its asOf does
	// not count.
	latePush
	// push: a push that came at asOf, and may have waited for nearly a heartbeat before.
	push
	// ownWrite: the answer to a write that was sent at asOf. The floor of its version is unknown
	// (L10).
	ownWrite
	// answer: the answer to a read that was sent at asOf.
	answer
)

// change says how one state replaced another.
type change uint8

const (
	replaced change = iota // none of the following, or there was no state before
	renewed                // the holder renewed its term
	vanished               // the record is gone, though its holder's lease may be running
	remade                 // the store was recreated
)

// trust says how far a state is believed.
type trust uint8

const (
	sound trust = iota
	// putBack: the state is older than the known one, and no holder was seen to renew it.
	putBack
	// unproven: the store was recreated or may have lost its last writes, and no holder was seen to
	// renew since. A record there that is released, vacant or this member's own may come from a
	// write that was sent before the loss, or be older than a write that is lost.
	unproven
)

// view is this member's knowledge of the cell.
type view struct {
	cell Cell
	// since is when the timer started: when an answer or a push first showed the stamp, or showed
	// that the store marks the state as unproven (newlyUnproven), or when the rumor of this write
	// came (firstHeard). It is never the time at which a read was sent. Followers count from here
	// (L2).
	since clock.Instant
	// heard is when the cell was last seen, and heardAt the same by the wall clock.
	heard   clock.Instant
	heardAt Moment
	// asOf and source are the last sight of the cell.
	asOf   clock.Instant
	source source
	// woken: at woke the cell was first seen, or a silence ended that was longer than a heartbeat.
	woken bool
	// suspect: the cell must be read before this member acts upon the view (L7).
	suspect bool
	// answered: the store has answered a read.
	answered bool
	// fresh: the last sight of the cell started the timer (see learn).
	fresh bool
	// written: a read, a write or a push has shown another state than a pristine one.
	written bool
	// change is how the state in view replaced the one before.
	change change
	// trust is how far the state in view is believed.
	trust trust
	woke  clock.Instant
	// era is the history of the store that was seen last.
	era uint64
	// highTerm and longLease are the highest term and the longest lease ever seen under this key,
	// highSeq the highest sequence number in that term's records. When a record with a lower term
	// is seen, the function mark drops a highTerm that has no credible successor.
	highTerm uint64
	highSeq  uint64
	// highestPushedTerm is the highest term of all pushes, except those that are unverified, and
	// peers' pushes that are not attested. A push counts here even if it changed nothing else. This
	// term is kept apart from highTerm because pushes may come out of order: no alarm is due if a
	// lower term follows a pushed one.
	highestPushedTerm uint64
	longLease         time.Duration
	// pushes counts the pushed cells that came into view: an operation in flight may be older.
	pushes uint64
	// rumor is a renewal that the store has not shown; nil if there is none.
	rumor *rumor
}

// known reports whether the cell has been seen, and is not forgotten (forgetIfInactive).
func (v *view) known() bool { return v.source != nowhere }

// certain reports whether this member may act upon the view without a read.
func (v *view) certain() bool { return v.known() && !v.suspect }

// learn takes c as the present state, and reports whether its timer starts now. self is this
// member's incarnation.
func (v *view) learn(now clock.Reading, c Cell, s sight, self string) bool {
	fresh := !v.known() || v.otherEra(&c) || c.stamp() != v.cell.stamp() || v.newlyUnproven(&c)
	if fresh {
		v.trust, v.change = v.trustOf(&c, s.by, self), v.changed(&c)
		v.since, v.rumor = v.firstHeard(now, &c), nil
	}
	if c.Era != 0 {
		v.era = c.Era
	}
	if c.Record.Incarnation == v.cell.Record.Incarnation {
		c.Record.Incarnation = v.cell.Record.Incarnation // one string in memory for all records
	}
	if c.vacant() && (v.cell.Kind == Absent || v.cell.vacant()) {
		c.Problem = v.cell.Problem
	}
	v.cell, v.source, v.asOf, v.written = c, s.by, s.asOf, v.written || !c.Pristine
	v.fresh, v.heard, v.heardAt = fresh, now.Instant, MomentOf(now.Wall)
	v.mark(&c)
	if !c.illegible() {
		v.longLease = max(v.longLease, c.Record.Lease)
	}
	return fresh
}

// newlyUnproven reports whether the store marks c as unproven, and the view is not unproven or
// shows another version. The stamp may be the one in view, but its holder may have renewed since,
// by a write that is lost.
func (v *view) newlyUnproven(c *Cell) bool {
	return c.Unproven && (v.trust != unproven || c.Version != v.cell.Version)
}

// changed returns how c replaces the state in view.
func (v *view) changed(c *Cell) change {
	switch {
	case v.otherEra(c):
		return remade
	case !v.known() || !v.held():
	case c.Kind == Absent:
		return vanished
	case c.Kind == Valid && c.Record.Held() && c.sameTerm(&v.cell) && v.renews(c):
		return renewed
	}
	return replaced
}

// renews reports whether c, which is of the term in view, shows a later write of its holder. The
// records of predecessors have no sequence numbers.
func (v *view) renews(c *Cell) bool {
	return c.stamp() != v.cell.stamp() && c.Record.Seq >= v.cell.Record.Seq
}

// trustOf returns how far c, a new state, is believed. If c shows that its holder goes on, it is
// sound, unless the store marks it as unproven. For this member's own record, only the answer to
// its own write shows that: reads and pushes may show two old records one after the other.
func (v *view) trustOf(c *Cell, by source, self string) trust {
	switch {
	case c.Unproven:
		return unproven
	case v.goesOn(c) && (by == ownWrite || c.Record.Incarnation != self):
		return sound
	case v.otherEra(c) || v.trust == unproven:
		return unproven
	case v.older(c):
		return putBack
	}
	return sound
}

// goesOn reports whether the holder of the state in view wrote c after it, and so is alive. A
// release counts only after a sound state: after any other, it may come from a holder that woke up
// much later, while the holder of a later term leads.
func (v *view) goesOn(c *Cell) bool {
	return v.known() && !v.otherEra(c) && v.cell.Kind == Valid && c.Kind == Valid &&
		c.sameTerm(&v.cell) && c.Record.Seq > v.cell.Record.Seq && (c.Record.Held() || v.trust == sound)
}

// thriving reports whether the last sight of the cell showed a new renewal.
func (v *view) thriving() bool { return v.change == renewed && v.fresh }

// mark records the highest term and sequence number of the election.
func (v *view) mark(c *Cell) {
	if c.Kind == Valid && c.Record.Term < v.highTerm && c.succeeded(v.highTerm) == 0 {
		v.highTerm, v.highSeq = 0, 0 // it has no credible successor
	}
	switch t := c.Record.Term; {
	case t > v.highTerm:
		v.highTerm, v.highSeq = t, 0
		fallthrough
	case t == v.highTerm && c.Kind == Valid && !c.vacant():
		v.highSeq = max(v.highSeq, c.Record.Seq)
	}
}

// highestSeenTerm returns the highest term that was read, written or pushed (L10).
func (v *view) highestSeenTerm() uint64 { return max(v.highTerm, v.highestPushedTerm) }

// older reports whether c is older than the newest state seen: a backup that was put back, or the
// state of an isolated server. Another member may lead by now, even if c is a release. Vacant
// records have sequence numbers of their own.
func (v *view) older(c *Cell) bool {
	if c.Kind != Valid || c.predecessor() {
		return false
	}
	return c.Record.Term < v.highTerm || c.Record.Term == v.highTerm && c.Record.Seq < v.highSeq && !c.vacant()
}

// otherEra reports whether c is of another history of the store than the known state.
func (v *view) otherEra(c *Cell) bool { return c.Era != 0 && v.era != 0 && c.Era != v.era }

// held reports whether the cell names a holder whose lease may be running, by the content of the
// cell alone.
func (v *view) held() bool { return v.cell.Kind == Valid && v.cell.Record.Held() }

// mayHoldLease reports whether the cell may hold a running lease, by its content alone (not by
// trust).
func (v *view) mayHoldLease() bool {
	return v.cell.Kind != Absent && v.cell.Kind != Foreign && !(v.cell.Kind == Valid && v.cell.Record.Released)
}

// expiresAfter returns how long a stamp must have been in view before this member may act as if its
// lease had expired. It is never less than the record's lease, and never less than this member's
// configured lease, because a damaged record may hide a lease of that length. A record that is not
// sound may hide any lease that was ever seen.
func (v *view) expiresAfter(cfg *Config) time.Duration {
	lease := max(cfg.Lease, v.cell.Record.Lease)
	if v.trust != sound {
		lease = max(lease, v.longLease)
	}
	return stretch(lease, cfg.Drift, v.bound())
}

// bound returns a drift bound in parts per million: each holder whose lease may be running has
// allowed for at least this bound. If the record in view is sound and names a holder, it is the
// bound that the record states, or 0 if it states none, as in older releases of Tenure. It is 0 if
// the holder is unknown, because the record is vacant, damaged or not sound. A vacant record of
// Tenure states no bound, but another program may write one.
func (v *view) bound() uint32 {
	if v.trust != sound || !v.held() {
		return 0
	}
	return v.cell.Record.Drift
}

// spread returns up to 4 ms, by a hash of member and term, so that few members claim at one instant
// (H1).
func spread(incarnation string, term uint64) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(incarnation))
	h.Write(strconv.AppendUint(nil, term, 10))
	return time.Duration(h.Sum32()%4000) * time.Microsecond
}
