//go:build unix

package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/clock"
	"golang.org/x/sys/unix"
)

// world is all that a guard deals with, in virtual time: the candidate, the kernel and the command.
type world struct {
	*testing.T
	began   time.Time
	orders  chan order
	reports chan report
	child   chan os.Signal
	over    chan struct{} // closed when the guard has ended

	mu      sync.Mutex
	told    []string      // what the guard and the command did, and when
	timer   time.Duration // when the kernel would kill the guard; 0: never
	limit   time.Duration // when another candidate may lead, as far as the guard knows
	members []*member     // of the next command, the command first
}

// member is a process of a command.
type member struct {
	name   string
	deaf   bool          // SIGTERM does not end it
	finish time.Duration // after SIGTERM, unless it is deaf
	asked  bool
	ended  bool
	told   bool
}

// inVirtualTime runs a guard until the test has closed its orders and nothing is left.
func inVirtualTime(t *testing.T, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, began: time.Now(), orders: make(chan order), reports: make(chan report, 100),
			child: make(chan os.Signal, 1), over: make(chan struct{}),
		}
		p := &process{
			clock: clock.Standard{}, kernel: w, orders: w.orders, reports: &pipe{w: w}, child: w.child, timer: time.NewTimer(0),
		}
		go func() { defer close(w.over); p.loop() }()
		play(w)
		<-w.over
		if w.timer != 0 {
			t.Errorf("nothing is left, and the kernel would kill the guard after %v", w.timer)
		}
	})
}

// Write takes a report.
func (w *world) Write(text []byte) (int, error) {
	var r report
	err := json.Unmarshal(text, &r)
	w.reports <- r
	return len(text), err
}

func (w *world) now() time.Duration { return time.Since(w.began) }

func (w *world) note(what string) { w.told = append(w.told, fmt.Sprintf("%v: %s", w.now(), what)) }

// run has the guard run a command, with so much left when it asks.
func (w *world) run(lease, stop time.Duration, members ...*member) {
	w.Helper()
	w.members = members
	w.orders <- order{Run: &Command{}}
	w.answer(lease, stop)
	if r := <-w.reports; r.Started == 0 {
		w.Fatalf("it reports %+v", r)
	}
}

// renew has the guard ask, and answers.
func (w *world) renew(lease, stop time.Duration) {
	w.Helper()
	w.orders <- order{Renewed: true}
	w.answer(lease, stop)
}

func (w *world) answer(lease, stop time.Duration) {
	w.Helper()
	n := w.question()
	w.promise(w.now() + lease + stop)
	w.orders <- order{Left: &left{n, lease, stop}}
}

func (w *world) promise(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = limit
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
	for _, r := range []report{{Ended: &how}, {Empty: true}} {
		got, _ := json.Marshal(<-w.reports)
		if text, _ := json.Marshal(r); string(text) != string(got) {
			w.Fatalf("it reports %s, want %s, after %q", got, text, w.told)
		}
	}
	if !slices.Equal(w.told, want) {
		w.Errorf("got  %q\nwant %q", w.told, want)
	}
	w.told = nil
}

func (w *world) begin(*Command) (work, error) { return w, nil }

// arm checks that the kernel's timer is due before another candidate may lead.
func (w *world) arm(now clock.Reading, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer = now.Wall.Sub(w.began) + after; w.timer > w.limit {
		w.Errorf("at %v the kernel is to kill the guard at %v, and somebody else may lead at %v", w.now(), w.timer, w.limit)
	}
}

func (w *world) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = 0
}

func (w *world) process() int { return 4711 }

func (w *world) signal(syscall.Signal) {}

func (w *world) ask(syscall.Signal) {}

// signalAll ends all if it is SIGKILL.
func (w *world) signalAll(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s != unix.SIGKILL {
		return
	}
	w.note("killed")
	if w.timer <= w.now() {
		w.Errorf("killed at %v, and the kernel kills the guard at %v", w.now(), w.timer)
	}
	for _, m := range w.members {
		m.ended = true
	}
	w.hear()
}

// finish asks each of them.
func (w *world) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("asked to end")
	for _, m := range w.members {
		if !m.deaf && !m.asked {
			m.asked = true
			w.ending(m, m.finish)
		}
	}
}

// ending has a member end by itself.
func (w *world) ending(m *member, after time.Duration) {
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !m.ended {
			m.ended = true
			w.note(m.name + " ends")
			w.hear()
		}
	})
}

func (w *world) hear() {
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
		if i == 0 && m.ended && !m.told {
			m.told, end = true, &Ending{Code: 3}
		}
		empty = empty && m.ended
	}
	return end, empty
}

var (
	forced = Ending{Code: 3, Forced: true}
	own    = Ending{Code: 3}
)

// stopIn has a reserve of 100 ms.
const stopIn = 800 * ms

func TestCommandHasTheLeaseAndThenWhatItMayStopIn(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(500*ms, stopIn, &member{name: "command", deaf: true})
		w.ends(forced, "500ms: asked to end", "1.2s: killed")
		w.run(500*ms, stopIn, &member{name: "command", finish: 100 * ms}) // which counts from now
		w.ends(forced, "1.7s: asked to end", "1.8s: command ends")
		close(w.orders)
	})
}

func TestRenewalsKeepACommandRunning(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(500*ms, stopIn, &member{name: "command", deaf: true})
		for range 10 {
			time.Sleep(400 * ms)
			w.renew(500*ms, stopIn)
		}
		w.ends(forced, "4.5s: asked to end", "5.2s: killed")
		close(w.orders)
	})
}

// However late an answer comes, it counts from before the question.
func TestSlowAnswerGivesNoMoreTime(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(500*ms, stopIn, &member{name: "command", deaf: true})
		time.Sleep(100 * ms)
		w.orders <- order{Renewed: true}
		n := w.question()
		w.promise(600*ms + stopIn)
		time.Sleep(350 * ms)
		w.orders <- order{Left: &left{n, 500 * ms, stopIn}}
		w.ends(forced, "600ms: asked to end", "1.3s: killed")
		close(w.orders)
	})
}

func TestCandidateThatHangsGivesNoMoreTime(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(500*ms, stopIn, &member{name: "command", deaf: true})
		time.Sleep(100 * ms)
		w.orders <- order{Renewed: true}
		n := w.question()
		time.Sleep(1300 * ms)
		w.orders <- order{Left: &left{n, time.Hour, stopIn}}
		w.ends(forced, "500ms: asked to end", "1.2s: killed")
		close(w.orders)
	})
}

// It was stopped, and finds that its term is over when there is little time left to the command.
func TestCandidateThatResumesLateGivesNoMoreTime(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(500*ms, stopIn, &member{name: "command", deaf: true})
		time.Sleep(1000 * ms)
		w.orders <- order{Renewed: true}
		w.orders <- order{Left: &left{w.question(), 0, stopIn}}
		w.ends(forced, "500ms: asked to end", "1.2s: killed")
		close(w.orders)
	})
}

func TestCommandOfADeadCandidateIsAskedAtOnceAndKilledInTime(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(1000*ms, stopIn, &member{name: "command", deaf: true})
		time.Sleep(300 * ms)
		close(w.orders)
		w.ends(forced, "300ms: asked to end", "1.7s: killed")
	})
}

// Processes that a command leaves behind have as long to end as the command has.
func TestLeftoversHaveTimeToStopIn(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		command, left := &member{name: "command"}, &member{name: "left", deaf: true}
		w.ending(command, 200*ms)
		w.run(time.Minute, stopIn, command, left)
		w.ends(own, "200ms: command ends", "200ms: asked to end", "900ms: killed")
		command, left = &member{name: "command"}, &member{name: "left", finish: 300 * ms}
		w.ending(command, 100*ms)
		w.run(time.Minute, stopIn, command, left)
		w.ends(own, "1s: command ends", "1s: asked to end", "1.3s: left ends")
		close(w.orders)
	})
}

func TestLeftoversHaveNoMoreThanTheLease(t *testing.T) {
	inVirtualTime(t, func(w *world) {
		w.run(400*ms, stopIn, &member{name: "command", finish: 500 * ms}, &member{name: "left", deaf: true})
		w.ends(forced, "400ms: asked to end", "900ms: command ends", "900ms: asked to end", "1.1s: killed")
		close(w.orders)
	})
}

// TestKernelsTimerIsNeverDueBeforeTheGuardIs: a time daemon may slew the clock of the kernel's
// timer. The guard therefore sets a distant timer early, and sets it again before it fires.
func TestKernelsTimerIsNeverDueBeforeTheGuardIs(t *testing.T) {
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
		w.ends(forced, "1h0m0s: asked to end", "1h0m0.7s: killed")
		close(w.orders)
	})
}
