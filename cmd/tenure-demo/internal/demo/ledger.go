package demo

import (
	"maps"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/driver"
)

// kind is the cause of a failover.
type kind string

// The kinds.
const (
	kindCrash    kind = "crash"    // the leader's process died
	kindPause    kind = "pause"    // the leader was frozen
	kindGraceful kind = "graceful" // the leader handed over
	kindForced   kind = "forced"   // the key was deleted
	kindOther    kind = "other"    // anything else, or several at once
)

// failover is the time from the event that ended a leader's term to the next election.
type failover struct {
	kind     kind
	from, to string
	took     time.Duration
	// least is the least possible time, if that is known: after a crash until the end of the lease,
	// counted from the last renewal that the store saw.
	least time.Duration
	known bool
	// most is the longest possible time where the store is polled, before the store's own latency;
	// 0 if there is no such bound.
	most time.Duration
}

// ledger records the leaders and the end of each term. It receives all entries, in order.
type ledger struct {
	leader    string
	term      uint64 // the latest, 0 before the first election
	since     stamp.Time
	elections int
	first     uint64
	tally     tally

	broken   *breach
	renewals map[uint64]renewal // by term
	nonce    string
	lastAct  func(token uint64) (stamp.Time, bool)
	// how much later than necessary followers may read; 0 if changes are pushed
	slack time.Duration
}

// breach is the event that ended the leader's term.
type breach struct {
	kind kind
	at   stamp.Time
}

// renewal is the last renewal of a term that the store showed.
type renewal struct {
	at    stamp.Time
	lease time.Duration
}

func newLedger(lastAct func(uint64) (stamp.Time, bool), slack time.Duration) *ledger {
	return &ledger{lastAct: lastAct, slack: slack, renewals: map[uint64]renewal{}, tally: tally{}}
}

// leads reports whether no event has ended the latest term.
func (l *ledger) leads() bool { return l.term > 0 && l.broken == nil }

// settled reports whether the present leader has led for so long that no member still follows the
// former one.
func (l *ledger) settled(now stamp.Time, lease time.Duration) bool {
	return l.leads() && now.Sub(l.since) > lease
}

// take returns the failover that the entry completes, or nil.
func (l *ledger) take(e entry) *failover {
	switch {
	case e.event != nil:
		return l.takeEvent(e.at, e.event)
	case e.deed != nil:
		l.takeDeed(e.at, e.deed)
	case e.sight != nil:
		l.takeSight(e.at, e.sight)
	}
	return nil
}

func (l *ledger) takeEvent(at stamp.Time, e *event) *failover {
	if e.Kind == tenure.EventElected && e.Term > l.term {
		return l.elected(at, e)
	}
	if e.ID != l.leader || e.Term != l.term {
		return nil
	}
	switch e.Kind {
	case tenure.EventLeaving, tenure.EventReleased:
		l.breaks(kindGraceful, at)
	case tenure.EventLost:
		l.breaks(whyLost(e), at)
	}
	return nil
}

// takeDeed ends the term if the action was on the leader.
func (l *ledger) takeDeed(at stamp.Time, d *deed) {
	if d.id != l.leader {
		return
	}
	switch d.do {
	case doKill, doDied:
		l.breaks(kindCrash, at)
	case doPause:
		l.breaks(kindPause, at)
	case doStop:
		l.breaks(kindGraceful, at)
	}
}

func (l *ledger) takeSight(at stamp.Time, s *sight) {
	switch {
	case s.absent:
		l.deleted(at)
	// the nonce does not change when another member adds a request to the record
	case s.held && s.nonce != l.nonce:
		l.nonce = s.nonce
		l.renewals[s.term] = renewal{at, s.lease}
	}
}

// breaks notes the event that ends the leader's term. Only the first counts; later ones follow from
// it.
func (l *ledger) breaks(k kind, at stamp.Time) {
	if l.leads() {
		l.broken = &breach{k, at}
	}
}

// deleted notes that the record was deleted. The leader may have noticed that before the demo did.
// After an event of another kind, the least time is unknown.
func (l *ledger) deleted(at stamp.Time) {
	switch {
	case l.leads():
		l.breaks(kindForced, at)
	case l.broken != nil && l.broken.kind != kindForced:
		l.broken.kind = kindOther
	}
}

// deleted is the reason of a loss because the record was deleted.
const deleted = tenure.Reason(driver.Deleted)

func whyLost(e *event) kind {
	if e.Reason == deleted {
		return kindForced
	}
	return kindOther
}

func (l *ledger) elected(at stamp.Time, e *event) *failover {
	var f *failover
	l.elections++
	if l.term > 0 {
		f = l.complete(at, e.ID)
	} else {
		l.first = e.Term
	}
	l.leader, l.term, l.since, l.broken = e.ID, e.Term, at, nil
	maps.DeleteFunc(l.renewals, func(term uint64, _ renewal) bool { return term < e.Term })
	return f
}

// complete returns the failover, counted from the breach. If there is none, such as when another
// program froze the leader, it counts from the leader's last act.
func (l *ledger) complete(at stamp.Time, to string) *failover {
	b := l.broken
	if b == nil {
		b = &breach{kindOther, at}
		if last, ok := l.lastAct(l.term); ok {
			b.at = last
		}
	}
	f := failover{kind: b.kind, from: l.leader, to: to, took: at.Sub(b.at)}
	f.least, f.known = l.least(b)
	f.most = l.most(b)
	l.tally.add(f)
	return &f
}

func (l *ledger) least(b *breach) (least time.Duration, known bool) {
	switch b.kind {
	case kindGraceful, kindForced:
		return 0, true
	case kindCrash, kindPause:
		end, ok := l.leaseEnd()
		return max(0, end.Sub(b.at)), ok
	}
	return 0, false
}

// leaseEnd returns the end of the latest term's lease, by the renewals that were seen.
func (l *ledger) leaseEnd() (stamp.Time, bool) {
	r, ok := l.renewals[l.term]
	return r.at.Add(r.lease), ok
}

// most returns the longest possible time, or 0 if there is no bound. Followers of a polled store
// may read it later by the slack, after the end of a lease as well as after a release.
func (l *ledger) most(b *breach) time.Duration {
	switch end, ok := l.leaseEnd(); {
	case l.slack == 0:
	case b.kind == kindGraceful:
		return l.slack
	case ok && (b.kind == kindCrash || b.kind == kindPause):
		return max(0, end.Add(l.slack).Sub(b.at))
	}
	return 0
}

// kinds are all kinds, in the order of the table.
var kinds = []kind{kindCrash, kindPause, kindGraceful, kindForced, kindOther}

// tally holds the failovers of each kind.
type tally map[kind][]failover

func (t tally) add(f failover) { t[f.kind] = append(t[f.kind], f) }

// row is the statistics of one kind: the times that its failovers took, and the least and the
// longest possible times.
type row struct {
	kind              kind
	n                 int
	took, least, most stat
}

// stat is the median and the maximum. It is not known if one of the times is unknown.
type stat struct {
	median, max time.Duration
	known       bool
}

func (t tally) rows() []row {
	var all []row
	for _, k := range kinds {
		all = append(all, summarize(k, t[k]))
	}
	return all
}

func summarize(k kind, fs []failover) row {
	r := row{kind: k, n: len(fs)}
	var took, least, most []time.Duration
	known, bounded := true, true
	for _, f := range fs {
		took, least, most = append(took, f.took), append(least, f.least), append(most, f.most)
		known, bounded = known && f.known, bounded && f.most > 0
	}
	r.took, r.least, r.most = statOf(took, true), statOf(least, known), statOf(most, bounded)
	return r
}

func statOf(ds []time.Duration, known bool) stat {
	if len(ds) == 0 || !known {
		return stat{}
	}
	return stat{median(ds), slices.Max(ds), true}
}

// median returns the median; for an even number, the mean of the two in the middle.
func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	n := len(ds)
	return (ds[(n-1)/2] + ds[n/2]) / 2
}

func (t tally) total() int {
	n := 0
	for _, fs := range t {
		n += len(fs)
	}
	return n
}
