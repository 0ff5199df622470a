//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

func TestMain(m *testing.M) { guardtest.Main(m, Main) }

// term is a candidate's lease. The guard asks for the remaining time.
type term struct {
	*world
	ends  atomic.Int64  // counted from the start of the world
	think time.Duration // the time of each answer from now on
}

// lasts sets the remaining time.
func (m *term) lasts(left time.Duration) { m.ends.Store(int64(m.now() + left)) }

func (m *term) left() time.Duration {
	left := time.Duration(m.ends.Load()) - m.now()
	m.promise(left, stopIn)
	time.Sleep(m.think)
	return left
}

// guarded runs a candidate and its guard in virtual time, with a pipe for each direction.
func guarded(t *testing.T, play func(g *Guard, m *term)) {
	t.Helper()
	inWorld(t, func(w *world) {
		g := newGuard(w.here.orders, w.leave, func() error { return nil })
		go g.listen(w.here.reports, func() error { <-w.over; return nil })
		must.OK(t, g.await(startWithin))
		play(g, &term{world: w})
		g.Close()
	})
}

// runs makes the guard run a deaf command.
func (m *term) runs(g *Guard, left time.Duration) *Run {
	m.next(&member{name: "command", deaf: true})
	m.lasts(left)
	return g.Run(Command{}, m.left, stopIn)
}

// reports checks all events of a run and all actions.
func (m *term) reports(r *Run, want []Event, happened ...string) {
	m.Helper()
	var got []Event
	for e := range r.Events {
		got = append(got, e)
	}
	a, _ := json.Marshal(got)
	if b, _ := json.Marshal(want); string(a) != string(b) {
		m.Errorf("got  %s\nwant %s", a, b)
	}
	m.happened(happened...)
}

// whole returns the events of a command that starts and ends.
func whole(how Ending) []Event {
	return []Event{{Started: started.Started}, {Ended: &how}, {Empty: true}}
}

func TestCommandEndsWhenRenewalsStop(t *testing.T) {
	guarded(t, func(g *Guard, m *term) {
		r := m.runs(g, 500*ms)
		for range 10 {
			time.Sleep(400 * ms)
			m.lasts(500 * ms)
			g.Renewed()
		}
		m.reports(r, whole(forced), "4.5s: asked to end", "5.1s: command is killed")
	})
}

func TestCommandEndsEarlierIfTheTermDoes(t *testing.T) {
	guarded(t, func(g *Guard, m *term) {
		r := m.runs(g, time.Hour)
		time.Sleep(time.Second)
		m.lasts(200 * ms)
		g.Renewed()
		m.reports(r, whole(forced), "1.2s: asked to end", "1.8s: command is killed")
	})
}

func TestNothingIsStartedWithoutALease(t *testing.T) {
	guarded(t, func(g *Guard, m *term) {
		for _, left := range []time.Duration{0, -time.Second} {
			m.reports(m.runs(g, left), []Event{{Empty: true}})
		}
		m.think = 300 * ms // the answer takes as long as the time that it says is left
		m.reports(m.runs(g, 300*ms), []Event{{Empty: true}})
		m.think--
		m.reports(m.runs(g, 300*ms), whole(forced), "600ms: asked to end", "1.2s: command is killed")
	})
}

// A renewal that the candidate reports too late changes nothing.
func TestCandidateThatHangsDoesNotRenew(t *testing.T) {
	guarded(t, func(g *Guard, m *term) {
		r := m.runs(g, 600*ms)
		synctest.Wait()
		m.lasts(time.Hour)
		m.think = 5 * time.Second
		g.Renewed()
		m.reports(r, whole(forced), "600ms: asked to end", "1.2s: command is killed")
	})
}

func TestClosedGuardRunsNothing(t *testing.T) {
	guarded(t, func(g *Guard, m *term) {
		g.Close()
		if !g.Gone() || !errors.Is(g.Err(), ErrDied) {
			t.Errorf("got %v, %v", g.Gone(), g.Err())
		}
		m.reports(m.runs(g, time.Hour), nil)
	})
}

// A guard process that is stopped does nothing. Killing it closes its reports.
func TestStoppedGuardIsKilled(t *testing.T) {
	for want, play := range map[time.Duration]func(g *Guard){
		startWithin: func(g *Guard) {
			if err := g.await(startWithin); !errors.Is(err, ErrDied) {
				t.Errorf("got %v", err)
			}
		},
		closeWithin: (*Guard).Close,
	} {
		synctest.Test(t, func(t *testing.T) {
			reports, theirs := net.Pipe()
			g := newGuard(io.Discard, func() {}, theirs.Close)
			go g.listen(reports, func() error { return errors.New("signal: command is killed") })
			begun := time.Now()
			play(g)
			if lasted := time.Since(begun); lasted != want {
				t.Errorf("after %v, want %v", lasted, want)
			}
			<-g.Dead()
		})
	}
}

// A user may call it by hand.
func TestGuardWithoutACandidate(t *testing.T) {
	for _, numbers := range [][]string{nil, {"x", "4", "5", "6"}, {"700", "701", "702", "703"}} {
		if err := Main(numbers); err == nil {
			t.Errorf("it runs with the files %v", numbers)
		}
	}
}

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
