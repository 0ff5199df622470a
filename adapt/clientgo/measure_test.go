package clientgo

import (
	"encoding/json"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

var measures = flag.Bool("measure", false, "measure how long two lead, which takes seconds")

// late is the time by which the answer of a renewal is late before the leader is cut off.
const late = 8 * time.Second

// measure returns for how long two operators led at once.
func measure(t *testing.T, scene func(*lab)) (over time.Duration) {
	t.Helper()
	if !*measures {
		t.Skip("the soak does it, with -measure")
	}
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, store: memory.New()}
		scene(l)
		time.Sleep(time.Minute)
		over, _ = l.overlap()
	})
	return over
}

// cut and cutLate are faults of the network between a leader and the store.
func cut(line faults.Store) { line.Partition() }

func cutLate(line faults.Store) {
	line.SetPlan(faults.Plan{Chances: faults.Chances{faults.DelayAfter: 1}, MinDelay: late, MaxDelay: late})
	time.Sleep(late + usual.RetryPeriod)
	line.Partition()
}

// TestMeasuredOverlaps is the table in docs/kubernetes-operators.md: the longest time for which two
// lead, with the usual settings of client-go in both modes, over faults at several moments between
// two renewals. Strict operators never do.
func TestMeasuredOverlaps(t *testing.T) {
	settings := func(c *Config) {
		c.Election.Lease, c.RetryPeriod, c.RenewDeadline, c.StopWork = 30*time.Second, usual.RetryPeriod, usual.RenewDeadline, time.Millisecond
	}
	for fault, c := range map[string]struct {
		strike    func(faults.Store)
		releases  bool // ReleaseOnCancel of the plain mode
		plainLeak bool // two lead in the plain mode
	}{
		"cut": {cut, false, false}, "cut, with ReleaseOnCancel": {cut, true, true},
		"late answer, then cut": {cutLate, false, true},
	} {
		var plain, strict time.Duration
		for after := time.Duration(0); after < 10*time.Second; after += 700 * time.Millisecond {
			plain = max(plain, measure(t, func(l *lab) {
				a := l.plain("a", c.releases)
				l.leads("a", time.Second)
				b := l.plain("b", c.releases)
				time.Sleep(time.Minute + after)
				c.strike(a.line)
				l.leads("b", 2*time.Minute)
				time.Sleep(time.Minute)
				a.line.Heal()
				a.ends()
				b.ends()
			}))
			strict = max(strict, measure(t, func(l *lab) {
				a := l.strict("a", settings).run()
				l.leads("a", time.Minute)
				b := l.strict("b", settings).run()
				time.Sleep(time.Minute + after)
				c.strike(a.line)
				l.leads("b", 2*time.Minute)
				_ = a.ended()
				a.line.Heal()
				want(t, b.ends(), nil)
			}))
		}
		t.Logf("%s: two lead for %v in the plain mode, %v in the strict mode", fault, plain, strict)
		if strict > 0 || (plain > 0) != c.plainLeak {
			t.Errorf("%s: the page says something else", fault)
		}
	}
}

// TestMeasuredFreeze: another elector has taken over while the leader was frozen. In the plain mode
// the leader works on until RenewDeadline. TestFrozenLeaderMayNotAct shows the strict mode.
func TestMeasuredFreeze(t *testing.T) {
	var most time.Duration
	for after := time.Duration(0); after < 4*time.Second; after += 300 * time.Millisecond {
		most = max(most, measure(t, func(l *lab) {
			a := l.plain("a", false)
			l.leads("a", time.Second)
			time.Sleep(time.Minute + after)
			// The leader stands still, so all that happened in that time happens at once.
			value, err := json.Marshal(cell{&resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 15}, "n"})
			if err != nil {
				t.Fatal(err)
			}
			l.store.Put(name, value)
			l.mu.Lock()
			l.work = append(l.work, &work{by: "b", begun: time.Now(), done: time.Now()})
			l.mu.Unlock()
			<-a.done
		}))
	}
	t.Logf("freeze: two lead for %v in the plain mode", most)
	if most < usual.RenewDeadline {
		t.Error("the page says something else")
	}
}
