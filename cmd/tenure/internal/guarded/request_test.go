//go:build unix

package guarded

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The first signal asks this process to end, a second one to kill. The same signal again at once
// counts as the first one.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Request
		done, atOnce := r.Done(), r.AtOnce()
		if closed(done) || r.Signal() != 0 {
			t.Error("there is a request before a signal")
		}
		for i, s := range []struct {
			after  time.Duration
			signal syscall.Signal
			kills  bool
		}{
			{0, syscall.SIGTERM, false}, {oneSignal / 2, syscall.SIGTERM, false}, {oneSignal, syscall.SIGTERM, true}, {0, syscall.SIGINT, true},
		} {
			time.Sleep(s.after)
			if first := r.Hear(s.signal); first != (i == 0) || !closed(done) || closed(atOnce) != s.kills || r.Signal() != syscall.SIGTERM {
				t.Errorf("signal %d: first %v, done %v, at once %v, %v", i, first, closed(done), closed(atOnce), r.Signal())
			}
		}
	})
}

// A child that sets the same variables gets only its own.
func TestEnvironment(t *testing.T) {
	t.Setenv("TENURE_TOKEN", "1")
	t.Setenv("TENURE_JOB", "a")
	t.Setenv("TENURE_STORE", "secret")
	t.Setenv("OTHER", "x")
	n := map[string]int{}
	for _, v := range Environment([]string{"TENURE_STORE"}, "TENURE_TOKEN=2") {
		n[v]++
	}
	for v, want := range map[string]int{"TENURE_TOKEN=1": 0, "TENURE_TOKEN=2": 1, "TENURE_JOB=a": 0, "TENURE_STORE=secret": 0, "OTHER=x": 1} {
		if n[v] != want {
			t.Errorf("%s is there %d times", v, n[v])
		}
	}
}
