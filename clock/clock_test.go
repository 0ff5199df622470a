package clock

import (
	"context"
	"runtime/pprof"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
)

const s = time.Second

func TestSince(t *testing.T) {
	cases := []struct {
		name             string
		mono, raw, boot  time.Duration
		leader, follower time.Duration
		why              string
	}{
		{"nothing", 0, 0, 0, 0, 0, "no time passed"},
		{"true", 10 * s, 10 * s, 10 * s, 10 * s, 10 * s, "all clocks agree"},
		{"slewed fast", 11 * s, 10 * s, 11 * s, 11 * s, 10 * s, "each side takes the clock that is safe for it"},
		{"slewed slow", 9 * s, 10 * s, 9 * s, 10 * s, 9 * s, "likewise"},
		{"suspended", 10 * s, 10 * s, 70 * s, 70 * s, 10 * s, "a leader was away for a minute; a follower has seen nothing in it"},
		{"suspended and slewed slow", 9 * s, 10 * s, 69 * s, 70 * s, 9 * s, "the slew must not hide a second behind the sleep"},
		{"suspended and slewed fast", 11 * s, 10 * s, 71 * s, 71 * s, 10 * s, "the safe side"},
		{"wall clock set forward", 10 * s, 10 * s, 3610 * s, 3610 * s, 10 * s, "taken for a sleep: costs a term and no more"},
		{"wall clock set back", 10 * s, 10 * s, -3590 * s, 10 * s, 10 * s, "it gives a leader no time"},
	}
	for _, start := range []time.Duration{0, -time.Hour, 1 << 60} {
		for _, c := range cases {
			from := Instant{Mono: start, Raw: -start, Boot: start / 2}
			to := Instant{Mono: start + c.mono, Raw: -start + c.raw, Boot: start/2 + c.boot}
			if got := to.LeaderSince(from); got != c.leader {
				t.Errorf("%s from %v: %v for a leader, want %v: %s", c.name, start, got, c.leader, c.why)
			}
			if got := to.FollowerSince(from); got != c.follower {
				t.Errorf("%s from %v: %v for a follower, want %v: %s", c.name, start, got, c.follower, c.why)
			}
		}
	}
}

func TestSystem(t *testing.T) {
	var c System
	first := c.Now()
	last := first
	for range 1000 {
		now := c.Now()
		if now.Mono < last.Mono || now.Raw < last.Raw {
			t.Fatalf("a clock went back: %+v after %+v", now, last)
		}
		if l, f := now.LeaderSince(first.Instant), now.FollowerSince(first.Instant); l < f {
			t.Fatalf("%v for a leader, and %v for a follower", l, f)
		}
		last = now
	}
	now := c.Now()
	wait.Until(t, "all clocks to advance", func() bool {
		now = c.Now()
		return now.FollowerSince(first.Instant) >= 20*time.Millisecond
	})
	if d := time.Since(now.Wall); d < -time.Minute || d > time.Minute {
		t.Errorf("the wall clock is %v off", d)
	}
	if c.Drift() <= 0 || c.Drift() > 0.1 {
		t.Errorf("drift is %v", c.Drift())
	}
}

func TestSystemTimer(t *testing.T) {
	rang := make(chan struct{})
	System{}.AfterFunc(time.Millisecond, func() { close(rang) })
	<-rang
	stop := System{}.AfterFunc(time.Hour, func() { t.Error("a stopped timer rang") })
	if !stop() || stop() {
		t.Error("a timer is stopped once")
	}
}

func TestStandardInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Standard
		from := c.Now()
		rang := make(chan Reading, 1)
		c.AfterFunc(time.Hour, func() { rang <- c.Now() })
		at := <-rang
		if l, f := at.LeaderSince(from.Instant), at.FollowerSince(from.Instant); l != time.Hour || f != time.Hour {
			t.Errorf("a virtual hour was %v for a leader and %v for a follower", l, f)
		}
		if at.Wall.Sub(from.Wall) != time.Hour {
			t.Errorf("the wall clock went on by %v", at.Wall.Sub(from.Wall))
		}
	})
}

func TestDefaultIsVirtualInABubbleAlone(t *testing.T) {
	if c := Default(); c != (System{}) {
		t.Errorf("outside of a bubble: %T", c)
	}
	synctest.Test(t, func(t *testing.T) {
		if c := Default(); c != (Standard{}) {
			t.Errorf("in a bubble: %T", c)
		}
		within := make(chan Clock)
		go func() { within <- Default() }()
		if c := <-within; c != (Standard{}) {
			t.Errorf("in another goroutine of a bubble: %T", c)
		}
	})
}

// With GODEBUG=tracebacklabels=1 a stack trace shows labels, which may hold any text.
func TestLabelsAreNoBubble(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1")
	pprof.Do(t.Context(), pprof.Labels("path", "/synctest bubble"), func(context.Context) {
		if c := Default(); c != (System{}) {
			t.Errorf("with labels: %T", c)
		}
	})
}
