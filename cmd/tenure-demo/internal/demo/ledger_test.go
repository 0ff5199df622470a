package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// elected and the functions below return the entries of a timeline, at a time in milliseconds.

func elected(ms int, id string, term uint64) entry {
	return happens(ms, tenure.EventElected, id, term, "")
}

func happens(ms int, k tenure.EventKind, id string, term uint64, why tenure.Reason) entry {
	return entry{at: at(ms), event: &event{Time: wall(ms), Kind: k, ID: id, Term: term, Reason: why}}
}

func does(ms int, what do, id string) entry {
	return entry{at: at(ms), deed: &deed{time: wall(ms), do: what, id: id}}
}

// renewed is a write with a new nonce. requested copies an earlier nonce.
func renewed(ms int, term uint64) entry {
	return entry{at: at(ms), sight: &sight{term: term, nonce: fmt.Sprint(ms), lease: time.Second, held: true}}
}

func requested(ms int, term uint64, copied int) entry {
	return entry{at: at(ms), sight: &sight{term: term, nonce: fmt.Sprint(copied), lease: time.Second, held: true}}
}

func deletes(ms int) entry { return entry{at: at(ms), sight: &sight{absent: true}} }

// follow returns the events that the ledger reports for a timeline.
func follow(l *ledger, timeline []entry) []string {
	var got []string
	for _, e := range timeline {
		if f := l.take(e); f != nil {
			least := "?"
			if f.known {
				least = f.least.String()
			}
			got = append(got, fmt.Sprintf("%s %s-%s %v/%s", f.kind, f.from, f.to, f.took, least))
		}
	}
	return got
}

func TestLedgerReportsDurationAndMinimumOfEachFailover(t *testing.T) {
	for _, c := range []struct {
		why      string
		timeline []entry
		want     []string
	}{
		{"the first election is no failover", []entry{elected(0, "c1", 1)}, nil},
		{
			"after a crash the lease runs from the last renewal",
			[]entry{elected(0, "c1", 1), renewed(1, 1), renewed(300, 1), does(500, doKill, "c1"), elected(1310, "c2", 4)},
			[]string{"crash c1-c2 810ms/800ms"},
		},
		{
			"a renewal may be seen after the crash",
			[]entry{elected(0, "c1", 1), renewed(1, 1), does(500, doKill, "c1"), renewed(501, 1), elected(1510, "c2", 4)},
			[]string{"crash c1-c2 1.01s/1.001s"},
		},
		{
			"the successor's claim is seen before it says that it was elected",
			[]entry{elected(0, "c1", 1), renewed(1, 1), does(500, doKill, "c1"), renewed(1005, 4), elected(1010, "c2", 4)},
			[]string{"crash c1-c2 510ms/501ms"},
		},
		{
			"a request to hand over is no renewal",
			[]entry{elected(0, "c1", 1), renewed(1, 1), requested(400, 1, 1), does(500, doKill, "c1"), elected(1010, "c2", 4)},
			[]string{"crash c1-c2 510ms/501ms"},
		},
		{
			"without sight of renewals the least is unknown",
			[]entry{elected(0, "c1", 1), does(500, doKill, "c1"), elected(1010, "c2", 4)},
			[]string{"crash c1-c2 510ms/?"},
		},
		{
			"a leader that is killed from outside counts as crashed",
			[]entry{elected(0, "c1", 1), renewed(1, 1), does(500, doDied, "c1"), elected(1010, "c2", 4)},
			[]string{"crash c1-c2 510ms/501ms"},
		},
		{
			"an action on a follower does not count",
			[]entry{elected(0, "c1", 1), does(100, doDied, "c2"), does(500, doStop, "c1"), elected(505, "c3", 4)},
			[]string{"graceful c1-c3 5ms/0s"},
		},
		{
			"a frozen leader that wakes and finds that it has lost breaks nothing more",
			[]entry{
				elected(0, "c1", 1), renewed(1, 1), does(500, doPause, "c1"), elected(1010, "c2", 4),
				does(2500, doResume, "c1"), happens(2501, tenure.EventLost, "c1", 1, "expired"), does(3000, doStop, "c2"), elected(3002, "c1", 5),
			},
			[]string{"pause c1-c2 510ms/501ms", "graceful c2-c1 2ms/0s"},
		},
		{
			"a leader that leaves by itself hands over",
			[]entry{elected(0, "c1", 1), happens(100, tenure.EventLeaving, "c1", 1, "handed-over"), happens(110, tenure.EventReleased, "c1", 1, ""), elected(112, "c2", 2)},
			[]string{"graceful c1-c2 12ms/0s"},
		},
		{
			"a deleted key forces a failover",
			[]entry{elected(0, "c1", 1), deletes(100), happens(101, tenure.EventLost, "c1", 1, deleted), elected(105, "c2", 6)},
			[]string{"forced c1-c2 5ms/0s"},
		},
		{
			"the leader may notice the deletion first",
			[]entry{elected(0, "c1", 1), happens(99, tenure.EventLost, "c1", 1, deleted), deletes(100), elected(105, "c2", 6)},
			[]string{"forced c1-c2 6ms/0s"},
		},
		{
			"a deletion after a crash is neither",
			[]entry{elected(0, "c1", 1), renewed(1, 1), does(100, doKill, "c1"), deletes(200), elected(1300, "c2", 6)},
			[]string{"other c1-c2 1.2s/?"},
		},
		{
			"a lease that runs out, as when the store is down",
			[]entry{elected(0, "c1", 1), happens(2000, tenure.EventLost, "c1", 1, "expired"), elected(9000, "c1", 2)},
			[]string{"other c1-c1 7s/?"},
		},
		{
			"an unobserved end counts from the leader's last act",
			[]entry{elected(0, "c1", 1), elected(1500, "c2", 2)},
			[]string{"other c1-c2 1.35s/?"},
		},
		{
			"an empty key at the start is no deletion",
			[]entry{deletes(0), elected(1, "c1", 1)}, nil,
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			l := newLedger(func(uint64) (stamp.Time, bool) { return at(150), true }, 0)
			if got := follow(l, c.timeline); !slices.Equal(got, c.want) {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), strings.Join(c.want, "; "))
			}
		})
	}
}

// Where the store is polled, both a missing renewal and a release may be noticed up to one poll
// later.
func TestLedgerReportsTheMaximumWhereTheStoreIsPolled(t *testing.T) {
	const slack = 700 * time.Millisecond
	for _, c := range []struct {
		why      string
		timeline []entry
		want     time.Duration
	}{
		{"crash", []entry{elected(0, "c1", 1), renewed(300, 1), does(500, doKill, "c1"), elected(1900, "c2", 4)}, 1500 * time.Millisecond},
		{"pause", []entry{elected(0, "c1", 1), renewed(300, 1), does(600, doPause, "c1"), elected(1900, "c2", 4)}, 1400 * time.Millisecond},
		{"graceful", []entry{elected(0, "c1", 1), renewed(300, 1), does(500, doStop, "c1"), elected(900, "c2", 4)}, slack},
		{"an unseen renewal", []entry{elected(0, "c1", 1), does(500, doKill, "c1"), elected(1900, "c2", 4)}, 0},
		{"deleted", []entry{elected(0, "c1", 1), renewed(300, 1), deletes(400), elected(1900, "c2", 4)}, 0},
	} {
		for _, slack := range []time.Duration{slack, 0} {
			l := newLedger(func(uint64) (stamp.Time, bool) { return 0, false }, slack)
			var f *failover
			for _, e := range c.timeline {
				f = l.take(e)
			}
			want := c.want
			if slack == 0 {
				want = 0 // with pushes only the minimum is reported
			}
			if f == nil || f.most != want {
				t.Errorf("%s with %v: got %+v, want %v", c.why, slack, f, want)
			}
		}
	}
}

func TestLedgerIsSettledALeaseAfterTheLastElection(t *testing.T) {
	l := newLedger(func(uint64) (stamp.Time, bool) { return 0, false }, 0)
	if l.settled(at(5000), time.Second) {
		t.Error("it is settled without a leader")
	}
	l.take(elected(100, "c1", 1))
	if l.settled(at(1100), time.Second) || !l.settled(at(1101), time.Second) {
		t.Error("it is settled after a lease")
	}
	if l.take(does(1200, doKill, "c1")); l.settled(at(1300), time.Second) {
		t.Error("the leader has died")
	}
}

func TestLedgerCountsElectionsAndTerms(t *testing.T) {
	l := newLedger(func(uint64) (stamp.Time, bool) { return 0, false }, 0)
	follow(l, []entry{elected(0, "c1", 3), does(1, doStop, "c1"), elected(2, "c2", 9), elected(3, "c3", 9), elected(4, "c1", 8)})
	if l.elections != 2 || l.first != 3 || l.term != 9 || l.leader != "c2" {
		t.Errorf("got %d elections, terms %d to %d, leader %s", l.elections, l.first, l.term, l.leader)
	}
}

func TestTallySummarizesEachKind(t *testing.T) {
	var l = tally{}
	for _, f := range []failover{
		{kind: kindCrash, took: 900, least: 800, known: true},
		{kind: kindCrash, took: 500, least: 490, known: true},
		{kind: kindCrash, took: 700, least: 650, known: true},
		{kind: kindGraceful, took: 4, known: true, most: 20},
		{kind: kindGraceful, took: 8, known: true, most: 10},
		{kind: kindPause, took: 900, least: 800, known: true, most: 990},
		{kind: kindPause, took: 950},
	} {
		l.add(f)
	}
	want := []row{
		{kind: kindCrash, n: 3, took: stat{700, 900, true}, least: stat{650, 800, true}},
		// One minimum is unknown, so none is shown.
		{kind: kindPause, n: 2, took: stat{925, 950, true}},
		{kind: kindGraceful, n: 2, took: stat{6, 8, true}, least: stat{0, 0, true}, most: stat{15, 20, true}},
		{kind: kindForced},
		{kind: kindOther},
	}
	for i, got := range l.rows() {
		if got != want[i] {
			t.Errorf("got  %+v\nwant %+v", got, want[i])
		}
	}
	if l.total() != 7 {
		t.Errorf("%d in all", l.total())
	}
}

func TestOverlappingActsAreReported(t *testing.T) {
	a := acts{last: map[uint64]stamp.Time{}}
	a.add(1, "c1", 101, at(10))
	a.add(2, "c2", 102, at(20))
	a.add(2, "c2", 102, at(15)) // late
	const want = "c1 (process 101) acts in term 1 10ms after c2 (process 102) first acted in term 2"
	if found := a.add(1, "c1", 101, at(25)); len(found) != 1 || found[0].String() != want || idOf(found[0].Newer) != "c2" {
		t.Errorf("got %v", found)
	}
	if last, ok := a.lastOf(2); a.n != 4 || a.overlaps != 1 || !ok || last != at(20) {
		t.Errorf("counted %d acts and %d overlaps, the last at %v, %t", a.n, a.overlaps, last, ok)
	}
	if last, ok := a.lastOf(4); ok {
		t.Errorf("got %v of a term that there was not", last)
	}
}

func stamps(entries []entry) []stamp.Time {
	var all []stamp.Time
	for _, e := range entries {
		all = append(all, e.at)
	}
	return all
}

func TestSorterReleasesEntriesInOrderAfterADelay(t *testing.T) {
	var s sorter
	for _, ms := range []int{30, 10, 20, 10} {
		s.add(entry{at: at(ms)})
	}
	if got := s.due(at(59)); len(got) != 0 {
		t.Errorf("let through too soon: %v", stamps(got))
	}
	if wait, ok := s.next(at(59)); !ok || wait != time.Millisecond {
		t.Errorf("next in %v, %v", wait, ok)
	}
	if got, want := stamps(s.due(at(75))), []stamp.Time{at(10), at(10), at(20)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.add(entry{at: at(5)}) // from a process that was frozen
	if wait, ok := s.next(at(75)); !ok || wait != 0 {
		t.Errorf("a late entry waits for %v, %v", wait, ok)
	}
	if got, want := stamps(s.due(at(80))), []stamp.Time{at(5), at(30)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := s.next(at(80)); ok {
		t.Error("something waits")
	}
}

func TestSorterKeepsTheOrderOfEqualStamps(t *testing.T) {
	var s sorter
	first, second := &deed{}, &deed{}
	s.add(entry{at: at(1), deed: first})
	s.add(entry{at: at(1), deed: second})
	if got := s.due(at(1000)); got[0].deed != first || got[1].deed != second {
		t.Error("swapped")
	}
}
