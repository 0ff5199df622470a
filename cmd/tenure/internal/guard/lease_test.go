//go:build unix

package guard

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// when returns a reading of clocks that agree, at d after they began.
func when(d time.Duration) clock.Reading {
	return clock.Reading{Instant: clock.Instant{Mono: d, Raw: d, Boot: d}}
}

const ms = time.Millisecond

// held is a lease. At 1 s the candidate was asked and answered that 100 ms were left. The stop time
// is 40 ms. So the lease is over at 1.1 s, and SIGKILL is due at 1.13 s.
func held() *lease {
	l := &lease{}
	q := l.ask(when(1000 * ms))
	l.answer(left{Question: q, Left: 100 * ms, Stop: 40 * ms})
	return l
}

// due checks the time until the lease is over and the time until SIGKILL.
func due(t *testing.T, l *lease, now clock.Reading, over, kill time.Duration) {
	t.Helper()
	if gotOver, gotKill := l.over(now), l.kill(now); gotOver != over || gotKill != kill {
		t.Errorf("over in %v, killed in %v; want %v and %v", gotOver, gotKill, over, kill)
	}
}

// Each clock may be slowed, or stand still while the machine sleeps.
func TestLeaseFollowsTheFastestClock(t *testing.T) {
	for why, at := range map[string]clock.Instant{
		"slewed":     {Mono: 1050 * ms, Raw: 1060 * ms, Boot: 1050 * ms},
		"slewed up":  {Mono: 1060 * ms, Raw: 1050 * ms, Boot: 1060 * ms},
		"has slept":  {Mono: 1020 * ms, Raw: 1020 * ms, Boot: 1060 * ms},
		"both":       {Mono: 1010 * ms, Raw: 1020 * ms, Boot: 1050 * ms},
		"with steps": {Mono: 1060 * ms, Raw: 1060 * ms, Boot: 1060 * ms},
	} {
		now := clock.Reading{Instant: at, Wall: time.Unix(0, 0)} // set wrong
		t.Run(why, func(t *testing.T) { due(t, held(), now, 40*ms, 70*ms) })
	}
}

func TestReserve(t *testing.T) {
	for stop, want := range map[time.Duration]time.Duration{0: 0, 40 * ms: 10 * ms, 400 * ms: 100 * ms, 3 * time.Second: 750 * ms, 5 * time.Second: time.Second} {
		if got := Reserve(stop); got != want {
			t.Errorf("of %v: %v, want %v", stop, got, want)
		}
	}
}

func TestKeepSmallFreesMemoryPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), []time.Duration{}
		freed := 0
		stop := keepSmall(time.Second, func() { freed++ }, func() { calls = append(calls, time.Since(began)) })
		time.Sleep(2*giveBackEvery + 2*time.Second)
		stop()
		time.Sleep(2 * giveBackEvery)
		synctest.Wait()
		if freed != 1 {
			t.Errorf("memory is freed %d times", freed)
		}
		if len(calls) != 3 || calls[0] != time.Second || calls[2] != time.Second+2*giveBackEvery {
			t.Errorf("pages are given back at %v", calls)
		}
	})
}
