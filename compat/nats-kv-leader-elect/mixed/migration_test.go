package mixed

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var migrations = flag.Int("migrations", 4, "how many fleets TestRollingMigration replaces")

// migrate replaces the old candidates one by one, while other things happen.
func (f *fleet) migrate() {
	for i := range 3 {
		f.startOld(i, f.often())
	}
	for i := range 3 {
		f.happen(4)
		f.startNew(i)
		f.happen(2)
		time.Sleep(f.between(0, 2*fleetTTL))
		f.end(i, false)
		time.Sleep(f.between(0, 2*fleetTTL))
		if i < 2 && f.between(0, 2) == 0 { // roll back, once
			f.end(3+i, false)
			f.startOld(i, f.often())
			f.happen(3)
			f.startNew(i)
			f.end(i, false)
		}
	}
	f.happen(3)
	f.await("a candidate leads", 2*fleetTTL+fleetLease, func() bool { _, p := f.leader(); return p != nil })
}

// often returns how often an old candidate campaigns: by its documentation, or with a back-off.
func (f *fleet) often() time.Duration {
	if f.between(0, 1) == 0 {
		return fleetTTL / 4 * 3
	}
	return f.between(2*time.Second, 12*time.Second)
}

// happen lets n things happen, mostly to the leader.
func (f *fleet) happen(n int) {
	for range n {
		f.report.steps++
		time.Sleep(f.between(0, 45*time.Second))
		i := f.pick()
		if i < 0 {
			continue
		}
		switch kind := f.between(0, 9); kind {
		case 0, 1:
			f.remove(kind == 0)
			if f.between(0, 1) == 0 { // and again, at a bad time
				time.Sleep(f.between(0, 10*time.Second))
				f.remove(kind == 0)
			}
		case 2:
			f.setClock(f.between(0, fleetTTL/3*2))
		case 3, 4, 5:
			if p, ok := f.at(i).(*newOne); ok {
				undo := p.trouble(kind == 3)
				time.Sleep(f.between(time.Second, 45*time.Second))
				undo()
			}
		default:
			f.replace(i, kind < 8)
		}
	}
}

func (f *fleet) replace(i int, crash bool) {
	f.end(i, crash)
	time.Sleep(f.between(0, fleetTTL))
	if i < 3 {
		f.startOld(i, f.often())
	} else {
		f.startNew(i - 3)
	}
}

func (f *fleet) pick() int {
	if i, p := f.leader(); p != nil && f.between(0, 3) > 0 {
		return i
	}
	alive := []int{}
	for i := range f.places {
		if f.at(i) != nil {
			alive = append(alive, i)
		}
	}
	if len(alive) == 0 {
		return -1
	}
	return alive[f.between(0, time.Duration(len(alive)-1))]
}

func TestRollingMigration(t *testing.T) {
	seeds := *migrations
	var sum report
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := inFleet(t, seed, conditions{handles: seed%4 == 3}, (*fleet).migrate)
			for _, fault := range r.faults {
				t.Error(fault)
			}
			if r.tokensNotAbove > 0 {
				t.Errorf("%d tokens that were not above the one before", r.tokensNotAbove)
			}
			if r.led < r.all/3 {
				t.Errorf("there was a leader for only %v of %v", r.led, r.all)
			}
			sum.steps += r.steps
			sum.oldToNew += r.oldToNew
			sum.newToOld += r.newToOld
			sum.led += r.led
			sum.all += r.all
			sum.longest = max(sum.longest, r.longest)
			sum.window = max(sum.window, r.window)
		})
	}
	t.Logf("%d steps, %d times from old to new, %d back; led %.0f %% of %v, nobody for at most %v; beside a leader whose record was "+
		"deleted an old one led for at most %v", sum.steps, sum.oldToNew, sum.newToOld, 100*float64(sum.led)/float64(sum.all), sum.all, sum.longest, sum.window)
	if sum.oldToNew < seeds || sum.newToOld < seeds/2 || sum.window == 0 && seeds >= 40 {
		t.Errorf("%d times from old to new, %d back, window %v: nothing is proved by that", sum.oldToNew, sum.newToOld, sum.window)
	}
}
