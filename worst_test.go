package tenure_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/memory"
)

// slow is a clock that runs slower than true time. It can be slewed as well.
type slow struct {
	clock.Clock
	raw, slew float64
}

func (s slow) Now() clock.Reading {
	r := s.Clock.Now()
	r.Raw = time.Duration(float64(r.Raw) * s.raw)
	r.Mono = time.Duration(float64(r.Mono) * s.raw * s.slew)
	r.Boot = r.Mono
	return r
}

func (s slow) AfterFunc(d time.Duration, f func()) func() bool {
	return s.Clock.AfterFunc(time.Duration(float64(d)/s.raw/s.slew), f)
}

// After a crash the next leader waits for the lease by its own clock: at most lease / (1 - r), and
// 9 % more while a time daemon slews that clock.
func TestFailoverBoundAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		clock slow
		most  time.Duration
	}{
		"true":            {slow{clock.Standard{}, 1, 1}, lease},
		"slow":            {slow{clock.Standard{}, 0.99, 1}, lease * 100 / 99},
		"slow and slewed": {slow{clock.Standard{}, 0.99, 1 / 1.09}, lease * 109 / 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				cut := faulty(t, store)
				elect(t, cut, "a", nil)
				b := start(t, mustNew(t, store, "b", func(cfg *tenure.Config) { cfg.Clock = c.clock }), holdOn)
				time.Sleep(2*lease + time.Millisecond) // right after a renewal
				renewed := time.Now()
				cut.Partition()
				within(t, 2*lease, b.won, "term of b")
				const busy = 100 * time.Millisecond // timers, and the spread of claims
				if took := time.Since(renewed); took < lease-time.Second || took > c.most+busy {
					t.Errorf("b leads %v after a's last renewal, at most %v was promised", took, c.most)
				}
				cut.Heal()
			})
		})
	}
}
