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
	Absent Kind = iota
	Valid
	Malformed
	Foreign
)

// Cell is one state of the store's cell, decoded.
type Cell struct {
	Kind     Kind
	Pristine bool
	// Unproven: later writes may be missing (driver.Entry.Unproven).
	Unproven bool
	// Unverified: anybody may have pushed this (driver.Entry.Unverified).
	Unverified bool
	Version    driver.Version
	Floor      uint64
	// Ceiling bounds the good terms where some may be above Floor; 0 means that Floor is the bound.
	Ceiling uint64
	// Era names the history of the store that this state belongs to; 0 where the store has none.
	Era uint64
	// Record is set for Valid cells. For Malformed ones its Lease and Term are the values that
	// could be recovered. For Malformed and Foreign ones its Nonce identifies the bytes: two cells
	// may have one version (L3a).
	Record record.Record
	// Problem describes, for people, the defect of a Malformed or Foreign cell, or why an Absent
	// one is absent.
	Problem error
}

// stamp identifies a holder's write. A request changes the version of a cell and not its stamp, so
// it restarts no timer (L2).
type stamp struct {
	incarnation string
	term        uint64
	nonce       string
	version     driver.Version // only where there is no record
}

func (c *Cell) stamp() stamp {
	if c.Kind != Valid {
		return stamp{version: c.Version, nonce: "kind " + strconv.Itoa(int(c.Kind)) + c.Record.Nonce, term: c.Record.Term}
	}
	return stamp{incarnation: c.Record.Incarnation, term: c.Record.Term, nonce: c.Record.Nonce}
}

// draft reports whether c is a vacant record that was put in an empty cell. Absence recurs, so the
// same request may be delivered again after another term and look the same: nonce, and where
// versions are made from the content, the version, too. So members do not wait for it. A second
// vacant record replaces it, which cannot come back as long as the draft does not, and members wait
// for that one.
func (c *Cell) draft() bool { return c.vacant() && c.Record.Seq == 0 }

// vacant reports whether c is a record without a holder, which was put in an empty cell.
func (c *Cell) vacant() bool {
	return c.Kind == Valid && c.Record.LeaderID == "" && !c.Record.Released
}

// illegible reports whether c is a malformed record whose lease cannot be read. Members wait for
// the maximum lease. But no member has seen such a lease, so it sets no silence interval, and the
// record that an operator puts in its place has a shorter one.
func (c *Cell) illegible() bool { return c.Kind == Malformed && c.Record.Lease >= record.MaxLease }

// sameTerm reports whether c and d are of one holder's term.
func (c *Cell) sameTerm(d *Cell) bool {
	return c.Record.Incarnation == d.Record.Incarnation && c.Record.Term == d.Record.Term
}

// predecessor reports whether an older kind of election wrote c. That kind has no terms, so none
// can be missed. Members wait for the lease as for any other, and claim above the known terms.
func (c *Cell) predecessor() bool {
	return c.Kind == Valid && c.Record.LeaderID != "" && c.Record.Term == 0
}

// after reports whether c is a later state than d by the content that holders wrote. It orders
// pushed entries, which may come late; versions are opaque and order nothing.
func (c *Cell) after(d *Cell) bool {
	if c.Record.Term != d.Record.Term {
		return c.Record.Term > d.Record.Term
	}
	if c.Record.Seq != d.Record.Seq {
		return c.Record.Seq > d.Record.Seq
	}
	return c.Floor > d.Floor
}

// sight is how a version came into view, and the latest moment at which it is known to have been in
// the cell. Versions may recur, so an old sight needs a new read before the version is replaced
// (L3a).
type sight struct {
	by   source
	asOf clock.Instant
}

// source says where a version was seen.
type source uint8

const (
	nowhere source = iota // nothing is known of the cell
	// latePush: a push that may have waited for as long as this process was stopped. It has no
	// asOf.
	latePush
	// push: it came at asOf, and may have waited for nearly a heartbeat.
	push
	// ownWrite: the answer to a write that was sent at asOf. The floor of its version is unknown
	// (L10).
	ownWrite
	// answer: to a read that was sent at asOf.
	answer
)

// change says how one state replaced another.
type change uint8

const (
	replaced change = iota // in any other way, or there was none before
	renewed                // by a write of the same holder
	vanished               // by absence, though its holder's lease may be running
	remade                 // the store was recreated
)

// trust says how far a state is believed.
type trust uint8

const (
	sound trust = iota
	// putBack: the state is older than the known one, and no holder was seen to go on from it.
	putBack
	// unproven: the store was recreated or lost its last writes, and no holder was seen to renew
	// since. A released, vacant or own record there may come from a request that was sent to the
	// store before, or be older than a write that is lost.
	unproven
)

// view is this member's knowledge of the cell.
type view struct {
	cell Cell
	// since is when the stamp was first seen, after the answer that showed it; followers count from
	// here (L2).
	since clock.Instant
	// heard is when the cell was last seen, and heardAt the same by the wall clock.
	heard   clock.Instant
	heardAt Moment
	// asOf and source are the sight that brought this version into view.
	asOf   clock.Instant
	source source
	// woken: a long silence ended, last at woke.
	woken bool
	// suspect: the view needs another read before it can be acted upon (L7).
	suspect bool
	// answered: the store has answered a read.
	answered bool
	// change is how the state in view replaced the one before.
	change change
	// trust is how far the state in view is believed.
	trust trust
	woke  clock.Instant
	// era is the history of the store that was seen last.
	era uint64
	// highTerm and longLease are the highest term and the longest lease ever seen under this key,
	// highSeq the highest sequence number in that term's records.
	highTerm uint64
	highSeq  uint64
	// highestPushedTerm is the highest term in a pushed entry, also in one that was of no other
	// use. Pushes may come out of order, so a lower term afterwards is no cause for alarm.
	highestPushedTerm uint64
	longLease         time.Duration
	// pushes counts accepted pushes, so that a read notices that a push overtook it.
	pushes uint64
	// rumor is a renewal that the store has not shown; nil if there is none.
	rumor *rumor
}

// known reports whether the cell has been seen.
func (v *view) known() bool { return v.source != nowhere }

// certain reports whether the view can be acted upon without a read.
func (v *view) certain() bool { return v.known() && !v.suspect }

// learn takes a cell as the present state. self is the incarnation of this member. It reports
// whether the stamp is new.
func (v *view) learn(now clock.Reading, c Cell, s sight, self string) bool {
	fresh := !v.known() || v.otherEra(&c) || c.stamp() != v.cell.stamp()
	if fresh {
		v.trust, v.change = v.trustOf(&c, s.by, self), v.changed(&c)
		v.since, v.rumor = v.firstHeard(now, &c), nil
	} else if c.Unproven {
		v.trust = unproven // the same write, with other content
	}
	if c.Era != 0 {
		v.era = c.Era
	}
	if c.Record.Incarnation == v.cell.Record.Incarnation {
		c.Record.Incarnation = v.cell.Record.Incarnation // one string in memory for all records
	}
	v.cell, v.source, v.asOf = c, s.by, s.asOf
	v.heard, v.heardAt = now.Instant, MomentOf(now.Wall)
	v.mark(&c)
	if !c.illegible() {
		v.longLease = max(v.longLease, c.Record.Lease)
	}
	return fresh
}

// changed returns how c replaces the state in view.
func (v *view) changed(c *Cell) change {
	switch {
	case v.otherEra(c):
		return remade
	case !v.known() || !v.held():
	case c.Kind == Absent:
		return vanished
	case c.Kind == Valid && c.Record.Held() && c.sameTerm(&v.cell):
		return renewed
	}
	return replaced
}

// trustOf returns how far c, a new state, is believed. This member's own record changes only by its
// own writes. If the record goes on without such a write, two old states are seen in order.
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

// goesOn reports whether the holder of the state in view wrote c, and so is alive. A holder that
// wakes up much later may release as well, so a release from a state that is not believed proves
// nothing.
func (v *view) goesOn(c *Cell) bool {
	return v.known() && !v.otherEra(c) && v.cell.Kind == Valid && c.Kind == Valid &&
		c.sameTerm(&v.cell) && c.Record.Seq > v.cell.Record.Seq && (c.Record.Held() || v.trust == sound)
}

// thriving reports whether the holder was seen to renew when the cell was last looked at.
func (v *view) thriving() bool { return v.change == renewed && v.heard == v.since }

// mark records the highest term and sequence number of the election.
func (v *view) mark(c *Cell) {
	if c.Kind == Valid && c.Record.Term < v.highTerm && c.succeeded(v.highTerm) == 0 {
		v.highTerm, v.highSeq = 0, 0 // no claim goes on from it any more
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

// older reports whether c is older than the known state: a backup that was put back, or the memory
// of an isolated server. Its holder, or its release, may be out of date. Vacant records have
// sequence numbers of their own.
func (v *view) older(c *Cell) bool {
	if c.Kind != Valid || c.predecessor() {
		return false
	}
	return c.Record.Term < v.highTerm || c.Record.Term == v.highTerm && c.Record.Seq < v.highSeq && !c.vacant()
}

// otherEra reports whether c is of another history of the store than the known state.
func (v *view) otherEra(c *Cell) bool { return c.Era != 0 && v.era != 0 && c.Era != v.era }

// held reports whether the cell names a holder whose lease, by its own content, may be running.
func (v *view) held() bool { return v.cell.Kind == Valid && v.cell.Record.Held() }

// expires reports whether a lease must expire before the cell may be claimed.
func (v *view) expires() bool {
	return v.cell.Kind != Absent && v.cell.Kind != Foreign && !(v.cell.Kind == Valid && v.cell.Record.Released)
}

// expiresAfter returns how long a stamp must have been in view before any member may act as if its
// lease had expired. It is never less than the record's lease, and never less than the own lease,
// which may be the one that a damaged record hides. A record that was put back may hide any lease
// that was ever seen.
func (v *view) expiresAfter(cfg *Config) time.Duration {
	lease := max(cfg.Lease, v.cell.Record.Lease)
	if v.trust != sound {
		lease = max(lease, v.longLease)
	}
	return stretch(lease, cfg.Drift, v.bound())
}

// bound returns the smallest bound, in parts per million, that a holder whose lease may be running
// can have allowed for. If the record in view names the only such holder, it is the bound that this
// record states. It is 0 where the holder is unknown, because the record is vacant or damaged or
// was put back. It is also 0 where an older release wrote the record without a bound.
func (v *view) bound() uint32 {
	if v.trust != sound || !v.held() {
		return 0
	}
	return v.cell.Record.Drift
}

// spread returns a few milliseconds, different for each member and term, so that many members do
// not claim at one instant (H1).
func spread(incarnation string, term uint64) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(incarnation))
	h.Write(strconv.AppendUint(nil, term, 10))
	return time.Duration(h.Sum32()%4000) * time.Microsecond
}
