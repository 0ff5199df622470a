package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Phase is the state of this member in the election.
type Phase uint8

// The phases; docs/protocol.md draws them.
const (
	Idle      Phase = iota // it does not campaign; it may observe
	Candidate              // it campaigns
	Leading                // it holds a term
	Ended                  // its term is over, and its work may still run
	Releasing              // its work has stopped, and it gives up the lease
)

// Outcome says how an operation ended.
type Outcome uint8

// The outcomes.
const (
	Applied  Outcome = iota + 1 // the write was applied, or the read was answered
	Conflict                    // the cell had another version
	Denied                      // rights are missing
	Unknown                     // any other: a write may be applied, now or later
)

// Op is one store operation to carry out within Timeout: a compare-and-swap from Prev to Record if
// Write is true, else a read. The caller passes the ID to WriteDone or ReadDone.
type Op struct {
	ID      uint64
	Write   bool
	Prev    driver.Version
	Record  record.Record
	Timeout time.Duration

	sent   clock.Reading // when Next returned it
	pushes uint64        // view.pushes at that time
	nonce  string        // of Record
	// doubted: another read must follow this operation (see doubt).
	doubted bool
	// unwatched: this write was sent before pushes began (see Watching).
	unwatched bool
}

// Machine is one member of one election. It is not safe for concurrent use: the caller makes one
// call at a time.
type Machine struct {
	cfg         *Config
	incarnation string
	cause       error // see Cause

	view    view
	lease   lease
	pending []pendingWrite // this member's writes that may be, or may still become, the record
	op      *Op            // in flight; nil if there is none
	lastOp  uint64         // the ID of the last operation

	phase      Phase
	dither     uint8 // random: 0 for the shortest interval between reads, 255 for the longest
	observing  bool  // it follows while Idle (see Observe)
	watching   bool  // the store pushes changes (see Watching)
	conflicted bool  // a write was refused since endFailures or confirm last cleared it
	nomination standing
	ineligible bool // see SetEligible
	again      bool // after the release: campaign again

	notBefore clock.Instant // no claim before it
	// claims counts claims, and releases by takeOver. It restarts with a campaign, after a win, and
	// when the cell is seen without a record of this member.
	claims    int32
	failures  int32         // operations that failed in a row
	failedAt  clock.Instant // when the last of them failed
	health    health
	successor string // the named one; empty for any
	// leavingSince is when the leader was asked to leave, or when the release began.
	leavingSince clock.Instant

	historyChanged Moment // see HistoryChanged

	leader      Leader       // as last reported
	transitions []Transition // that Next has not returned yet
}

// New returns an idle machine. Each machine needs its own incarnation. Machines may share a Config,
// which must not change afterwards.
func New(cfg *Config, incarnation string) *Machine {
	return &Machine{cfg: cfg, incarnation: incarnation, dither: 128}
}

// Reconfigure changes the settings of a running machine, but not its ID. They apply to the next
// write. An earlier write keeps its lease and deadline: a member that has seen no later write waits
// for the whole lease in that write, even if the new lease is shorter.
func (m *Machine) Reconfigure(cfg *Config) {
	if cfg.StopWithin > m.cfg.StopWithin {
		m.lease.hasten = true // the larger StopWithin takes effect with the next write
	}
	m.cfg = cfg
}

// Campaign starts a campaign. No claim is sent before the given delay and a random part of Splay
// have passed. Campaign has an effect only when Idle.
func (m *Machine) Campaign(now clock.Reading, delay time.Duration) {
	if m.phase != Idle {
		return
	}
	m.forgetIfInactive()
	if m.cfg.Splay > 0 {
		delay += time.Duration(m.cfg.Rand() % uint64(m.cfg.Splay))
	}
	m.candidate(now, delay)
}

func (m *Machine) candidate(now clock.Reading, delay time.Duration) {
	m.phase, m.claims = Candidate, 0
	m.health.well = false
	m.notBefore = later(now.Instant, delay)
	m.tell(Transition{What: Candidacy})
}

// Withdraw ends the campaign, and cancels one that would follow a release. It first overwrites a
// pending claim, or a term that is not announced, with a release (L16). An announced term goes on.
func (m *Machine) Withdraw(now clock.Reading) {
	m.expire(now)
	if m.phase == Releasing {
		m.again = false
	}
	won := m.phase == Leading && !m.lease.announced
	if m.phase != Candidate && !won {
		return
	}
	m.withdraw(now, false)
	if !won && !m.claimPending() {
		m.leaveTerm(now)
	}
}

// withdraw begins to release a term that was won but not announced, or a pending claim (L16). If
// again, the member campaigns afterwards.
func (m *Machine) withdraw(now clock.Reading, again bool) {
	m.phase, m.again, m.successor, m.leavingSince = Releasing, again, "", now.Instant
}

// claimPending reports whether a claim of this member may be in the cell, now or later.
func (m *Machine) claimPending() bool {
	for i := range m.pending {
		if m.pending[i].purpose == claim {
			return true
		}
	}
	return false
}

// Ask asks this member to leave if it leads, and notifies the caller. The member renews until
// Finish, for FinishWithin at most.
func (m *Machine) Ask(now clock.Reading, why error) {
	m.expire(now)
	if m.phase != Leading || m.lease.asked != nil {
		return
	}
	m.lease.asked, m.leavingSince = why, now.Instant
	m.tell(Transition{What: Leaving, Term: m.lease.term, Cause: why})
}

// HandOver is Ask with a named successor; an empty one means any member. The successor that was
// named last counts, even if the leader is already leaving.
func (m *Machine) HandOver(now clock.Reading, to, by string) {
	m.Ask(now, fmt.Errorf("%w by %q", ErrHandOver, by))
	if m.phase == Leading {
		m.successor = to
	}
}

// Finish reports that the work of the term has stopped. Only now may anything be released (L9). If
// again, this member campaigns once more, after the given delay.
func (m *Machine) Finish(now clock.Reading, successor string, again bool, delay time.Duration) {
	m.expire(now)
	if m.phase != Leading && m.phase != Ended {
		return
	}
	lost := m.phase == Ended && !errors.Is(m.cause, ErrOverdue)
	if m.phase == Leading {
		m.cause = ErrReleased
		m.declineNomination()
	}
	if successor != "" {
		m.successor = successor
	}
	m.again, m.leavingSince = again, now.Instant
	m.notBefore = later(now.Instant, delay)
	m.phase = Releasing
	if lost && again && m.lease.absence == "" && m.claimsAtOnce() {
		// A campaign is better than a release: if the record still names this member, it may claim
		// at once.
		m.leaveTerm(now)
	}
}

// Abandon ends a term whose work panicked. The member neither renews nor releases it, since other
// goroutines of that work may still run.
func (m *Machine) Abandon(now clock.Reading) {
	m.expire(now)
	if m.phase == Leading {
		m.end(ErrAbandoned)
	}
}

// Active reports whether the machine takes part, observes, or waits for an answer.
func (m *Machine) Active() bool { return m.phase != Idle || m.observing || m.op != nil }

// Observe sets whether the machine follows the election while it is Idle.
func (m *Machine) Observe(on bool) {
	if on {
		m.forgetIfInactive()
	}
	m.observing = on
	if !on && m.phase == Idle {
		m.op = nil // no observer is left for its answer
	}
}

// forgetIfInactive forgets the cell if the machine was not Active. It keeps the terms and leases
// seen.
func (m *Machine) forgetIfInactive() {
	if !m.Active() {
		m.view.source, m.view.cell, m.view.rumor = nowhere, Cell{}, nil
	}
}

// Watching sets whether the store pushes changes at present. A change between the last read or
// write and the beginning of pushes would go unseen. So a follower reads once more. A leader renews
// at once: if there is a request to hand over, the renewal conflicts, and the leader reads. It does
// not read first, because a stale read could show the state before its claim and end its term.
func (m *Machine) Watching(on bool) {
	switch {
	case !on || m.watching:
	case m.op != nil && m.op.Write:
		m.op.unwatched = true
	case m.phase == Leading && m.view.certain():
		m.lease.hasten = true
	default:
		m.doubt()
	}
	m.watching = on
}

// Tick ends the term or the operation in flight if its time is over.
func (m *Machine) Tick(now clock.Reading) {
	m.expire(now)
	if m.op != nil {
		m.giveUp(now)
	}
}

// giveUp gives up the operation in flight if its time is over, and reports whether it did. An
// answer that comes later does not count: it may have waited while this process was stopped.
func (m *Machine) giveUp(now clock.Reading) bool {
	if at := m.giveUpAt(); at.left(now.Instant) > 0 {
		return false
	}
	what := "read"
	if m.op.Write {
		what = "write"
	}
	m.trouble(now, Unknown, fmt.Errorf("%s: %w", what, ErrTimeout))
	m.op = nil
	return true
}

// Overdue reports whether it is too late to send op: this process was stopped since Next returned
// it.
func (op *Op) Overdue(now clock.Reading) bool { return op.Took(now) >= op.Timeout }

// Took returns the time since Next returned the operation.
func (op *Op) Took(now clock.Reading) time.Duration { return now.LeaderSince(op.sent.Instant) }

// giveUpAt returns when the operation in flight is given up: after its Timeout. During a release,
// half of ReleaseWithin is the limit if that is shorter, so a lost answer leaves time for another
// try.
func (m *Machine) giveUpAt() due {
	limit := m.op.Timeout
	if m.phase == Releasing {
		limit = min(limit, m.cfg.ReleaseWithin()/2)
	}
	return byLeader(m.op.sent.Instant, limit)
}

// Todo is the list of actions for the caller.
type Todo struct {
	// Op is a new operation to start; nil if there is none. An operation that is no longer the
	// machine's Current one can be canceled: its answer is ignored.
	Op *Op
	// Wake is the longest time until the next call of Tick, if Timed.
	Wake  time.Duration
	Timed bool
	// Transitions are the changes since the last call, in order.
	Transitions []Transition
}

// Next decides on the next actions. The caller calls it after every input. First, a term ends at
// its deadline (L1, L4). Timers also run while an operation is in flight. Then the phase decides on
// the next operation, one at a time (L7). Last, Next reports the leader and when to call again.
func (m *Machine) Next(now clock.Reading) Todo {
	m.expire(now)
	wake := wakeup{}
	if m.op != nil {
		m.timers(now, &wake)
	}
	var op *Op
	if m.op == nil { // also if a timer has just given up the operation
		wake = wakeup{}
		op = m.decide(now, &wake)
		m.op = op
	}
	m.noteLeader(now, &wake)
	if m.op != nil {
		wake.at(now, m.giveUpAt())
	}
	todo := Todo{Op: op, Wake: wake.d, Timed: wake.set, Transitions: m.transitions}
	m.transitions = nil
	return todo
}

// decide returns the next operation. If there is none, it sets the wakeup and returns nil. Several
// phases may follow one another in one call.
func (m *Machine) decide(now clock.Reading, wake *wakeup) *Op {
	for {
		m.timers(now, wake)
		before := m.phase
		op := m.step(now, wake)
		if op != nil || m.phase == before {
			return op
		}
		*wake = wakeup{} // drop that of the phase before
	}
}

func (m *Machine) step(now clock.Reading, wake *wakeup) *Op {
	switch m.phase {
	case Candidate:
		return m.stepCandidate(now, wake)
	case Leading:
		return m.stepLeading(now, wake)
	case Releasing:
		return m.stepReleasing(now, wake)
	case Ended:
		return m.follow(now, wake)
	}
	if m.observing {
		return m.follow(now, wake)
	}
	return nil
}

// timers runs the actions that time alone causes, also while an operation is in flight.
func (m *Machine) timers(now clock.Reading, wake *wakeup) {
	switch m.phase {
	case Leading:
		m.leaderTimers(now, wake)
	case Releasing:
		m.releasingTimers(now, wake)
	}
}

// start numbers op, and notes its time limit and when it begins.
func (m *Machine) start(now clock.Reading, op Op) *Op {
	m.lastOp++
	op.ID, op.sent, op.pushes = m.lastOp, now, m.view.pushes
	op.Timeout = m.Attempt()
	return &op
}

// Attempt returns the time limit of the next operation.
func (m *Machine) Attempt() time.Duration {
	if m.phase == Leading {
		return min(m.cfg.Attempt(), m.lease.held.timeout())
	}
	return m.cfg.Attempt()
}

func (m *Machine) read(now clock.Reading) *Op { return m.start(now, Op{}) }

// write completes r, starts its write, and keeps it as pending until its outcome is known.
func (m *Machine) write(now clock.Reading, p purpose, prev driver.Version, r record.Record) *Op {
	r.Nonce = m.nonce()
	r.Lease, r.Drift = m.leaseFor(p), m.boundFor(p)
	m.lease.moves++ // this write may have a shorter lease
	m.pending = append(m.pending, pendingWrite{
		promise: promise{sent: now.Instant, budget: m.cfg.Budget, renew: m.cfg.Renew},
		purpose: p, nonce: r.Nonce, term: r.Term, prev: prev, over: m.view.cell.Record.Nonce, nominated: m.isNominee(),
	})
	return m.start(now, Op{Write: true, Prev: prev, Record: r, nonce: r.Nonce})
}

// leaseFor returns the lease to write. In a vacant record it is the longest lease known here:
// members wait for it, because a leader whose record is gone may still work.
func (m *Machine) leaseFor(p purpose) time.Duration {
	if p == create {
		return max(m.cfg.Lease, m.view.longLease)
	}
	return m.cfg.Lease
}

// boundFor returns the drift bound to write. A vacant record states none (0): any member may have
// led before it, and the bound of that member is unknown.
func (m *Machine) boundFor(p purpose) uint32 {
	if p == create {
		return 0
	}
	return m.cfg.Drift
}

func (m *Machine) nonce() string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i, x := 0, m.cfg.Rand(); i < len(b); i, x = i+1, x>>4 {
		b[i] = digits[x&15]
	}
	return string(b[:])
}
