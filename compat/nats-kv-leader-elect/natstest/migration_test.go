package natstest

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/migration"
)

var migrations = flag.Int("migrations", 4, "how many fleets TestRollingMigration replaces")

// migrate replaces the old candidates one by one, while other things happen.
func (f *fleet) migrate() {
	f.Migrate(2*ttl, 2*ttl+lease, func(i int) { f.startOld(i, f.often()) }, func(i int) { f.startNew(i) }, f.happen)
}

// often returns how often an old candidate campaigns: by its documentation, or with a back-off.
func (f *fleet) often() time.Duration {
	if f.Draw(2) == 0 {
		return ttl / 4 * 3
	}
	return f.Between(2*time.Second, 12*time.Second)
}

// happen lets one thing happen to a candidate.
func (f *fleet) happen(i int) {
	switch kind := f.Draw(10); kind {
	case 0, 1:
		f.remove(kind == 0)
		if f.Draw(2) == 0 { // and again, at a bad time
			time.Sleep(f.Between(0, 10*time.Second))
			f.remove(kind == 0)
		}
	case 2:
		f.setClock(f.Between(0, ttl/3*2))
	case 3, 4, 5:
		if p, ok := f.At(i).(*migration.Candidate); ok {
			undo := p.Trouble(kind == 3, time.Second)
			time.Sleep(f.Between(time.Second, 45*time.Second))
			undo()
		}
	default:
		f.End(i, kind < 8)
		time.Sleep(f.Between(0, ttl))
		if i < 3 {
			f.startOld(i, f.often())
		} else {
			f.startNew(i - 3)
		}
	}
}

func TestRollingMigration(t *testing.T) {
	seeds := *migrations
	var sum report
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := inFleet(t, seed, conditions{handles: seed%4 == 3}, (*fleet).migrate)
			r.Require(t)
			sum.Add(r.Report)
			sum.window = max(sum.window, r.window)
		})
	}
	t.Logf("%v; beside a leader whose record was deleted an old one led for at most %v", sum.Report, sum.window)
	if sum.OldToNew < seeds || sum.NewToOld < seeds/2 || sum.window == 0 && seeds >= 40 {
		t.Errorf("%v, window %v: nothing is proved by that", sum.Report, sum.window)
	}
}
