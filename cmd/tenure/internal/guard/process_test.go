//go:build unix

package guard

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"golang.org/x/sys/unix"
)

// world replaces everything that a guard deals with, in virtual time: the candidate, the kernel and
// the command.
type world struct {
	*testing.T
	began   time.Time
	here    struct{ orders, reports net.Conn } // the candidate's ends of the pipes
	reports chan report
	child   chan os.Signal
	over    chan struct{} // closed when the guard has ended

	mu      sync.Mutex
	actions []string      // the actions of the guard and the command, with their times
	timer   time.Duration // the time at which the kernel would kill the guard; 0: never
	limit   time.Duration // the earliest time at which another candidate may lead
	members []*member     // the processes of the next command, the command first
	found   bool          // a search has found the strays among them

	searching time.Duration // the time that a search takes
}

// member is a process of a command.
type member struct {
	name   string
	alive  time.Duration // it ends by itself after this time; 0: never
	deaf   bool          // SIGTERM does not end it
	stray  bool          // it is outside of the group
	stuck  bool          // SIGKILL does not end it
	finish time.Duration // the time that it needs after SIGTERM, unless it is deaf
	asked  bool
	ended  bool
	noted  bool
}

// inVirtualTime lets a test send messages to a guard as a late or mistaken candidate would.
func inVirtualTime(t *testing.T, play func(w *world)) {
	t.Helper()
	inWorld(t, func(w *world) {
		go receive(w.here.reports, func(r report) { w.reports <- r })
		w.receive(report{Ready: true})
		play(w)
	})
}

// inWorld runs a guard until the test has ended and no process of the command is left.
func inWorld(t *testing.T, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, began: time.Now(), reports: make(chan report, 100),
			child: make(chan os.Signal, 1), over: make(chan struct{}),
		}
		var orders, reports net.Conn
		w.here.orders, orders = net.Pipe()
		w.here.reports, reports = net.Pipe()
		p := &enforcer{
			clock: clock.Standard{}, kernel: w, reports: &pipe{w: reports}, child: w.child, timer: time.NewTimer(0),
		}
		go func() {
			defer close(w.over)
			p.serve(orders)
			_ = reports.Close()
		}()
		t.Cleanup(func() {
			w.leave()
			if <-w.over; w.timer != 0 {
				t.Errorf("nothing is left, and the kernel would kill the guard after %v", w.timer)
			}
		})
		play(w)
	})
}

// send sends an order of the candidate to the guard.
func (w *world) send(o order) {
	w.Helper()
	must.OK(w, (&pipe{w: w.here.orders}).send(o))
}

// receive checks the next report.
func (w *world) receive(want report) {
	w.Helper()
	got, _ := json.Marshal(<-w.reports)
	if text, _ := json.Marshal(want); string(text) != string(got) {
		w.Fatalf("it reports %s, want %s, after %q", got, text, w.actions)
	}
}

// leave closes the orders to the guard.
func (w *world) leave() { _ = w.here.orders.Close() }

func (w *world) now() time.Duration { return time.Since(w.began) }

func (w *world) note(what string) {
	w.actions = append(w.actions, fmt.Sprintf("%v: %s", w.now(), what))
}

// run makes the guard run a command. The answer to the guard's request says how much is left.
func (w *world) run(lease, stop time.Duration, members ...*member) {
	w.Helper()
	w.next(members...)
	w.send(order{Run: &Command{}})
	w.answer(lease, stop)
	w.receive(started)
}

// next sets the members of the next command.
func (w *world) next(members ...*member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members, w.limit, w.found = members, 0, false
}

func (w *world) answer(lease, stop time.Duration) {
	w.Helper()
	n := w.question()
	w.promise(lease, stop)
	w.send(order{Left: &left{n, lease, stop}})
}

// promise records that no other candidate leads until the lease is over, which now has this time
// left, and the command is stopped.
func (w *world) promise(lease, stop time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = max(w.limit, w.now()+lease+stop)
}

func (w *world) question() uint64 {
	w.Helper()
	r := <-w.reports
	if r.Question == 0 {
		w.Fatalf("it reports %+v", r)
	}
	return r.Question
}

// ends waits for the end of the command and of all its descendants, and checks the actions until
// then.
func (w *world) ends(how Ending, want ...string) {
	w.Helper()
	w.receive(report{Ended: &how})
	w.receive(empty)
	w.happened(want...)
}

// happened checks all actions since the last check, with their times.
func (w *world) happened(want ...string) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.actions, want) {
		w.Errorf("got  %q\nwant %q", w.actions, want)
	}
	w.actions = nil
}

func (w *world) begin(*Command) (work, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		if m.alive > 0 {
			w.ending(m, m.alive)
		}
	}
	return w, nil
}

// arm checks that the kernel's timer leaves half of the reserve for killing, unless the guard runs
// when the lease is over. The timer must be due in time even on a slewed clock. The guard is
// continued before it is killed.
func (w *world) arm(now clock.Reading, next, due, kill time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kill == 0 {
		w.timer = 0
		return
	}
	if at := now.Wall.Sub(w.began) + due; due <= 0 || at > w.limit-Reserve(stopIn) {
		w.Errorf("at %v the killer is set to %v, and another candidate may lead at %v", w.now(), at, w.limit)
	}
	w.timer = now.Wall.Sub(w.began) + kill
	latest := w.limit
	if w.now() < w.limit-stopIn {
		latest -= Reserve(stopIn) / 2
	}
	if w.timer > latest || w.timer+kill/slewed > w.limit {
		w.Errorf("at %v the kernel is set to kill the guard at %v, and another candidate may lead at %v", w.now(), w.timer, w.limit)
	}
	if wake := next - next/4; wake <= 0 || wake >= kill {
		w.Errorf("at %v the kernel is set to continue the guard after %v, and to kill it after %v", w.now(), wake, kill)
	}
}

func (w *world) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = 0
}

func (w *world) process() int { return started.Started }

func (w *world) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("the command gets " + unix.SignalName(s))
}

// ask asks each member to end if the signal is SIGTERM, and then searches for strays.
func (w *world) ask(s syscall.Signal, within time.Duration) {
	w.signaled(s)
	w.search(within)
}

func (w *world) signaled(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s != unix.SIGTERM {
		w.note("all gets " + unix.SignalName(s))
		return
	}
	w.note("asked to end")
	for _, m := range w.members {
		if !m.deaf && !m.asked {
			m.asked = true
			w.ending(m, m.finish)
		}
	}
}

// search takes a while. The kernel's timer must not kill the guard before its end.
func (w *world) search(within time.Duration) {
	w.mu.Lock()
	takes := w.searching
	w.mu.Unlock()
	time.Sleep(min(takes, within))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != 0 && w.timer <= w.now() {
		w.Errorf("the guard searches until %v, and the kernel kills it at %v", w.now(), w.timer)
	}
	w.found = w.found || takes <= within
}

// kill ends all members, but strays only if they have been found.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != 0 && w.timer <= w.now() {
		w.Errorf("killed at %v, and the kernel kills the guard at %v", w.now(), w.timer)
	}
	for _, m := range w.members {
		if !m.ended && !m.stuck && (!m.stray || w.found) {
			m.ended = true
			w.note(m.name + " is killed")
			w.childEnds()
		}
	}
}

// ending lets a member end by itself.
func (w *world) ending(m *member, after time.Duration) {
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !m.ended {
			m.ended = true
			w.note(m.name + " ends")
			w.childEnds()
		}
	})
}

func (w *world) childEnds() {
	select {
	case w.child <- unix.SIGCHLD:
	default:
	}
}

func (w *world) collect() (end *Ending, empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	empty = true
	for i, m := range w.members {
		if i == 0 && m.ended && !m.noted {
			m.noted, end = true, &Ending{Code: 3}
		}
		empty = empty && m.ended
	}
	return end, empty
}

var (
	forced = Ending{Code: 3, Forced: true}
	own    = Ending{Code: 3}

	started = report{Started: 4711}
	empty   = report{Empty: true}
)

// stopIn has a reserve of 200 ms.
const stopIn = 800 * ms

// TestDeadlines: each scenario says when the command and what it leaves behind are asked to end,
// and when they are killed.
func TestDeadlines(t *testing.T) {
	deaf := func(w *world) { w.run(500*ms, stopIn, &member{name: "command", deaf: true}) }
	// a search between SIGTERM and SIGKILL, for processes outside of the group
	search := func(takes time.Duration, end string) func(w *world) {
		return func(w *world) {
			w.searching = takes
			w.run(500*ms, stopIn, &member{name: "command", deaf: true}, &member{name: "stray", deaf: true, stray: true})
			w.ends(forced, "500ms: asked to end", "1.1s: command is killed", end)
		}
	}
	for why, play := range map[string]func(w *world){
		"a command gets the lease, and then the stop time, which counts from the answer": func(w *world) {
			deaf(w)
			w.ends(forced, "500ms: asked to end", "1.1s: command is killed")
			w.run(500*ms, stopIn, &member{name: "command", finish: 100 * ms})
			w.ends(forced, "1.6s: asked to end", "1.7s: command ends")
		},
		"a lease counts from before the request, however late the answer comes": func(w *world) {
			deaf(w)
			time.Sleep(100 * ms)
			w.send(order{Renewed: true})
			n := w.question()
			w.promise(500*ms, stopIn)
			time.Sleep(350 * ms)
			w.send(order{Left: &left{n, 500 * ms, stopIn}})
			w.ends(forced, "600ms: asked to end", "1.2s: command is killed")
		},
		"an answer to an earlier request does not extend the lease": func(w *world) {
			deaf(w)
			w.send(order{Renewed: true})
			first := w.question()
			w.send(order{Renewed: true})
			w.question()
			w.send(order{Left: &left{first, time.Hour, stopIn}})
			w.ends(forced, "500ms: asked to end", "1.1s: command is killed")
		},
		"a candidate that was stopped finds that its term is over, and does not extend the lease": func(w *world) {
			deaf(w)
			time.Sleep(1000 * ms)
			w.send(order{Renewed: true})
			w.send(order{Left: &left{w.question(), 0, stopIn}})
			w.ends(forced, "500ms: asked to end", "1.1s: command is killed")
		},
		"the command of a dead candidate is asked at once, and killed in time": func(w *world) {
			w.run(1000*ms, stopIn, &member{name: "command", deaf: true})
			time.Sleep(300 * ms)
			w.leave()
			w.ends(forced, "300ms: asked to end", "1.6s: command is killed")
		},
		"what a search has found is killed with the command": search(500*ms, "1.1s: stray is killed"),
		"a search that takes longer delays only its own end": search(700*ms, "1.8s: stray is killed"),
		"what cannot be killed takes little of the guard's time": func(w *world) {
			w.searching = 60 * ms
			stuck := &member{name: "command", deaf: true, stuck: true}
			w.run(500*ms, stopIn, stuck)
			time.Sleep(3000 * ms)
			w.mu.Lock()
			stuck.stuck = false
			w.mu.Unlock()
			w.ends(forced, "500ms: asked to end", "3.62s: command is killed")
		},
		"what a command leaves behind has the same time to end as the command": func(w *world) {
			w.run(time.Minute, stopIn, &member{name: "command", alive: 200 * ms}, &member{name: "left", deaf: true})
			w.ends(own, "200ms: command ends", "200ms: asked to end", "800ms: left is killed")
			w.run(time.Minute, stopIn, &member{name: "command", alive: 100 * ms}, &member{name: "left", finish: 300 * ms})
			w.ends(own, "900ms: command ends", "900ms: asked to end", "1.2s: left ends")
		},
		"what a command leaves behind has no more than the lease": func(w *world) {
			w.run(400*ms, stopIn, &member{name: "command", finish: 500 * ms}, &member{name: "left", deaf: true})
			w.ends(forced, "400ms: asked to end", "900ms: command ends", "900ms: asked to end", "1s: left is killed")
		},
	} {
		t.Run(why, func(t *testing.T) { inVirtualTime(t, play) })
	}
}

// A time daemon may slew the clock of the kernel's timer. The guard therefore sets a distant timer
// early, and sets it again before it fires.
func TestKernelTimerIsNeverDueBeforeTheGuard(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(time.Hour, stopIn, &member{name: "command", deaf: true})
		for range 100 {
			time.Sleep(36 * time.Second)
			w.mu.Lock()
			if w.timer <= w.now() {
				t.Errorf("at %v it is due at %v", w.now(), w.timer)
			}
			w.mu.Unlock()
		}
		w.ends(forced, "1h0m0s: asked to end", "1h0m0.6s: command is killed")
	})
}

// A guard that runs when the lease is over is not stopped: the kernel gives it the whole reserve.
func TestKernelGivesALateGuardTheWholeReserve(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(500*ms, stopIn, &member{name: "command", deaf: true})
		half := w.limit - Reserve(stopIn)/2
		for at, later := range map[time.Duration]bool{400 * ms: false, 1000 * ms: true} {
			time.AfterFunc(at, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.timer > half != later {
					t.Errorf("at %v the kernel is set to kill the guard at %v; half of the reserve is over at %v", w.now(), w.timer, half)
				}
			})
		}
		w.ends(forced, "500ms: asked to end", "1.1s: command is killed")
	})
}

// TestGuardHandlesLateMessages exchanges messages between a candidate and a guard while one of them
// is slow.
func TestGuardHandlesLateMessages(t *testing.T) {
	signal := func(all bool) order { return order{Signal: &forward{int(unix.SIGHUP), all}} }
	run, exited := order{Run: &Command{}}, report{Ended: &own}
	notStarted := func(w *world, end order) {
		w.send(run)
		w.receive(report{Question: 1})
		w.send(end)
		w.receive(empty)
		w.send(order{Left: &left{1, time.Hour, stopIn}})
		w.happened()
	}
	for why, talk := range map[string]func(w *world){
		"an answer to an earlier request starts nothing": func(w *world) {
			w.send(run)
			w.receive(report{Question: 1})
			w.send(order{Renewed: true})
			w.receive(report{Question: 2})
			w.send(order{Left: &left{1, time.Hour, stopIn}})
			w.send(order{Left: &left{2, 0, stopIn}})
			w.receive(empty)
			w.happened()
		},
		"an answer from another term starts nothing": func(w *world) {
			w.run(time.Hour, stopIn, &member{name: "command", alive: ms})
			w.receive(exited)
			w.receive(empty)
			w.send(run)
			w.receive(report{Question: 2})
			w.send(order{Left: &left{1, time.Hour, stopIn}})
			w.send(order{Left: &left{2, 0, stopIn}})
			w.receive(empty)
			w.happened("1ms: command ends")
		},
		"a command that is killed before its start is not started":       func(w *world) { notStarted(w, order{Kill: true}) },
		"a command that is asked to end before its start is not started": func(w *world) { notStarted(w, signal(true)) },
		"signals and Kill reach only a running command": func(w *world) {
			w.send(signal(true))
			w.send(signal(false))
			w.send(order{Kill: true})
			w.run(time.Hour, stopIn, &member{name: "command"})
			w.send(signal(true))
			w.send(signal(false))
			w.send(order{Kill: true})
			w.ends(forced, "0s: all gets SIGHUP", "0s: the command gets SIGHUP", "0s: command is killed")
		},
		"a candidate that is gone starts nothing": func(w *world) {
			w.send(run)
			w.receive(report{Question: 1})
			w.happened()
		},
	} {
		t.Run(why, func(t *testing.T) {
			inVirtualTime(t, func(w *world) {
				talk(w)
				w.leave()
				<-w.over
				if len(w.reports) > 0 {
					t.Errorf("it also reports %+v", <-w.reports)
				}
			})
		})
	}
}
