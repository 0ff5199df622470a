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
	Version  driver.Version
	Floor    uint64
	// Ceiling is above every good term, where Floor is not; 0: Floor is.
	Ceiling uint64
	// Era names the history of the store that this state is of; 0 where the store cannot tell.
	Era uint64
	// Record is set for Valid cells. For Malformed ones its Lease and Term are what could be salvaged.
	// For them and Foreign ones its Nonce identifies the bytes: two may have one version (L3a).
	Record record.Record
	// Problem says what is wrong with a Malformed or Foreign cell, or how an Absent one came to be so,
	// for people.
	Problem error
}

// stamp names a holder's write. A request changes the version of a cell and not its stamp, so it restarts no timer (L2).
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

// draft reports whether c is a vacant record as it was put where nothing was. Absence recurs, so the request that put it
// there may be delivered again when somebody has led in between, and look the same: nonce, and where versions are made of
// the content the version, too. So nobody waits for it. It is replaced by another vacant record, which cannot come
// back as long as this one does not, and that is waited out.
func (c *Cell) draft() bool { return c.vacant() && c.Record.Seq == 0 }

// vacant reports whether c is a record without a holder, such as somebody put where nothing was.
func (c *Cell) vacant() bool {
	return c.Kind == Valid && c.Record.LeaderID == "" && !c.Record.Released
}

// illegible reports whether c is a malformed record whose lease cannot be read. It is waited out for as long as any may
// last; but no member has seen such a lease. So it sets no silence interval, and what an operator puts in its place is not
// waited for as long.
func (c *Cell) illegible() bool { return c.Kind == Malformed && c.Record.Lease >= record.MaxLease }

// sameTerm reports whether c and d are of one holder's term.
func (c *Cell) sameTerm(d *Cell) bool {
	return c.Record.Incarnation == d.Record.Incarnation && c.Record.Term == d.Record.Term
}

// predecessor reports whether c was written by an election of an older kind, which knows no terms, so that none can be
// missed in it. It is waited out like any other and claimed above what is known.
func (c *Cell) predecessor() bool {
	return c.Kind == Valid && c.Record.LeaderID != "" && c.Record.Term == 0
}

// after reports whether c is a later state than d by what the holders wrote into them. It orders pushed entries, which
// may come late; versions are opaque and order nothing.
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
// the cell. Versions may recur, so what was seen long ago is read again before anything is put in
// its place (L3a).
type sight struct {
	by   source
	asOf clock.Instant
}

// source is where a version was seen.
type source uint8

const (
	nowhere source = iota // nothing is known of the cell
	// latePush: a push that may have waited for as long as this process was stopped. It has no asOf.
	latePush
	// push: it came at asOf, and may have waited for nearly a heartbeat.
	push
	// ownWrite: the answer to a write that was sent at asOf. The floor of its version is unknown (L10).
	ownWrite
	// answer: to a read that was sent at asOf.
	answer
)

// change is how one state took the place of another.
type change uint8

const (
	replaced change = iota // in any other way, or there was none before
	renewed                // by a write of the same holder
	vanished               // by absence, though its holder's lease may be running
	remade                 // the store was recreated
)

// trust is how far a state is believed.
type trust uint8

const (
	sound trust = iota
	// putBack: the state is older than what was known, and no holder was seen to go on from it.
	putBack
	// unproven: the store was recreated, and no holder was seen to renew since. What is released,
	// vacant or one's own may be what a request of before has left there.
	unproven
)

// view is what this member knows of the cell.
type view struct {
	cell Cell
	// since is when the stamp was first seen, after the answer that showed it; followers count from here (L2).
	since clock.Instant
	// heard is when anything was last heard, and heardAt by the wall clock.
	heard   clock.Instant
	heardAt Moment
	// asOf and source are the sight that brought this version into view.
	asOf   clock.Instant
	source source
	// woken: a long silence ended, last at woke.
	woken bool
	// suspect means that the view cannot be acted upon before the cell was read again (L7).
	suspect bool
	// change is how the state in view took the place of the one before.
	change change
	// trust is how far the state in view is believed.
	trust trust
	woke  clock.Instant
	// era is the history of the store that was seen last.
	era uint64
	// highTerm and longLease are the highest term and the longest lease ever seen under this key, highSeq the highest
	// number of that term's records.
	highTerm uint64
	highSeq  uint64
	// highestPushedTerm is the highest term in a pushed entry, also in one that was of no other use.
	// It may come out of order, so a lower one afterwards is no cause for alarm.
	highestPushedTerm uint64
	longLease         time.Duration
	// pushes counts accepted pushes, so that a read that was overtaken by one is told.
	pushes uint64
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
		v.since = now.Instant
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

// changed is how c takes the place of the state in view.
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

// trustOf is how far c, a new state, is believed. This member's own record changes only
// by its own writes. If it goes on without one, two old states are seen in order.
func (v *view) trustOf(c *Cell, by source, self string) trust {
	switch {
	case v.goesOn(c) && (by == ownWrite || c.Record.Incarnation != self):
		return sound
	case v.otherEra(c) || v.trust == unproven:
		return unproven
	case v.older(c):
		return putBack
	}
	return sound
}

// goesOn reports whether the holder of the state in view wrote c, and so lives. One that wakes up
// much later may release as well, so a release from a state that is not believed proves nothing.
func (v *view) goesOn(c *Cell) bool {
	return v.known() && !v.otherEra(c) && v.cell.Kind == Valid && c.Kind == Valid &&
		c.sameTerm(&v.cell) && c.Record.Seq > v.cell.Record.Seq && (c.Record.Held() || v.trust == sound)
}

// thriving reports whether the holder was seen to renew when the cell was last looked at.
func (v *view) thriving() bool { return v.change == renewed && v.heard == v.since }

// mark keeps how far the election is known to have come.
func (v *view) mark(c *Cell) {
	if c.Kind == Valid && c.Record.Term < v.highTerm && c.succeeded(v.highTerm) == 0 {
		v.highTerm, v.highSeq = 0, 0 // nobody goes on from it any more
	}
	switch t := c.Record.Term; {
	case t > v.highTerm:
		v.highTerm, v.highSeq = t, 0
		fallthrough
	case t == v.highTerm && c.Kind == Valid && !c.vacant():
		v.highSeq = max(v.highSeq, c.Record.Seq)
	}
}

// highestSeenTerm is the highest term that was read, written or pushed (L10).
func (v *view) highestSeenTerm() uint64 { return max(v.highTerm, v.highestPushedTerm) }

// older reports whether c is a state from before what is known: a backup that was put back, or what an isolated server remembers.
// What it says of its holder, or of a release, was so once and may not be now. Vacant records have numbers of their own.
func (v *view) older(c *Cell) bool {
	if c.Kind != Valid || c.predecessor() {
		return false
	}
	return c.Record.Term < v.highTerm || c.Record.Term == v.highTerm && c.Record.Seq < v.highSeq && !c.vacant()
}

// otherEra reports whether c is of another history of the store than what is known.
func (v *view) otherEra(c *Cell) bool { return c.Era != 0 && v.era != 0 && c.Era != v.era }

// held reports whether the cell names a holder whose lease may still be running, as far as it says itself.
func (v *view) held() bool { return v.cell.Kind == Valid && v.cell.Record.Held() }

// expires reports whether there is a lease to run out before the cell may be claimed.
func (v *view) expires() bool {
	return v.cell.Kind != Absent && v.cell.Kind != Foreign && !(v.cell.Kind == Valid && v.cell.Record.Released)
}

// expiresAfter is how long a stamp must have been in view before anybody may act as if its lease
// had run out: never less than the record's lease, and never less than one's own, which may be the
// one that a damaged record hides. What was put back may hide any lease that was ever seen.
func (v *view) expiresAfter(cfg *Config) time.Duration {
	lease := max(cfg.Lease, v.cell.Record.Lease)
	if v.trust != sound {
		lease = max(lease, v.longLease)
	}
	return stretch(lease, cfg.Drift, v.bound())
}

// bound is the smallest bound, in parts per million, that a holder may have allowed for whose
// lease may be running: what the record in view states if it names the only such holder. Nobody
// knows whose lease is waited for where a record is vacant or damaged, or was put back; an older
// release states no bound. All of these count as 0.
func (v *view) bound() uint32 {
	if v.trust != sound || !v.held() {
		return 0
	}
	return v.cell.Record.Drift
}

// spread is a few milliseconds, different for each member and term, so that a crowd does not claim at one instant (H1).
func spread(incarnation string, term uint64) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(incarnation))
	h.Write(strconv.AppendUint(nil, term, 10))
	return time.Duration(h.Sum32()%4000) * time.Microsecond
}
