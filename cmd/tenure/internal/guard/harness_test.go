//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stamp"
)

// long is a lease whose end no test waits for.
const long = time.Minute

// brief is one that is enough for a command to begin in.
const brief = 1500 * time.Millisecond

// candidate is a test that has a guard.
type candidate struct {
	*testing.T
	guard   *Guard
	journal *guardtest.Journal
	left    atomic.Int64
}

func newCandidate(t *testing.T) *candidate {
	t.Helper()
	g, err := Start(guardtest.Guard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return &candidate{T: t, guard: g, journal: guardtest.NewJournal(guardtest.Dir(t))}
}

// worker is a command that keeps the journal.
func (c *candidate) worker(w guardtest.Worker) Command {
	w.Journal = c.journal.Path
	if w.Name == "" {
		w.Name = "command"
	}
	return NewCommand(guardtest.Self(), append([]string{"worker"}, w.Args()...), os.Environ())
}

// shell is one that does what a shell is told.
func shell(script string, env ...string) Command {
	return NewCommand("/bin/sh", []string{"sh", "-c", script}, append(os.Environ(), env...))
}

// lease says how much is left, and notes when it said so: the guard must count from between the last "asks" and the last "answers" of
// the journal.
func (c *candidate) lease(left time.Duration) func() time.Duration {
	c.left.Store(int64(left))
	return func() time.Duration {
		c.journal.Add("candidate", "answers")
		return time.Duration(c.left.Load())
	}
}

// run has a command run that has begun, with all its children. Only then is so little left.
func (c *candidate) run(w guardtest.Worker, left, stop time.Duration) *Run {
	c.Helper()
	r := c.guard.Run(c.worker(w), c.lease(long), stop)
	c.started(r)
	_ = c.pid()
	c.left.Store(int64(left))
	c.renew()
	c.renew() // the guard has heard of that before
	return r
}

// renew returns when the guard has asked.
func (c *candidate) renew() {
	c.Helper()
	before := c.journal.Count("candidate", "answers")
	c.journal.Add("candidate", "asks")
	c.guard.Renewed()
	guardtest.Eventually(c.T, func() bool { return c.journal.Count("candidate", "answers") > before }, func() string { return "the guard does not ask" })
}

// pid is that of the command, and of its group.
func (c *candidate) pid() int {
	c.Helper()
	return c.journal.Await(c.T, "command", "begin").PID
}

// isGone waits until there is no such process.
func (c *candidate) isGone(pid int) {
	c.Helper()
	guardtest.Eventually(c.T, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }, func() string { return "it still runs" })
}

// next is the next event, and none at their end.
func (c *candidate) next(r *Run) (e Event, ok bool) {
	c.Helper()
	select {
	case e, ok = <-r.Events:
	case <-time.After(guardtest.Patience):
		c.Fatal("there is no next event")
	}
	return e, ok
}

// started returns the process.
func (c *candidate) started(r *Run) int {
	c.Helper()
	e, ok := c.next(r)
	if !ok || e.Started <= 0 || e != (Event{Started: e.Started}) {
		c.Fatalf("not started, but %+v", e)
	}
	return e.Started
}

// rest are all events from now on.
func (c *candidate) rest(r *Run) (all []Event) {
	c.Helper()
	for e, ok := c.next(r); ok; e, ok = c.next(r) {
		all = append(all, e)
	}
	return all
}

// expect checks all events from now on.
func (c *candidate) expect(r *Run, want ...Event) {
	c.Helper()
	if got := c.rest(r); !reflect.DeepEqual(got, want) {
		c.Errorf("got %s, want %s", show(got), show(want))
	}
}

// ends checks that the command ends so, and then that nothing acts any more.
func (c *candidate) ends(r *Run, how Ending) {
	c.Helper()
	c.expect(r, Event{Ended: &how}, Event{Empty: true})
	now := stamp.Now()
	if last := c.lastAct(); last > now {
		c.Errorf("something acts %v after the last event", last.Sub(now))
	}
}

// lastAct is when the last of all workers did, some time later.
func (c *candidate) lastAct() stamp.Time {
	time.Sleep(20 * time.Millisecond) // in which they would
	return lastAct(c.journal)
}

func lastAct(j *guardtest.Journal) (at stamp.Time) {
	for _, n := range j.Notes() {
		if n.Name != "candidate" {
			at = n.At
		}
	}
	return at
}

func show(all []Event) string {
	text, _ := json.Marshal(all)
	return string(text)
}

var (
	killed     = Ending{Signal: int(syscall.SIGKILL), Forced: true}
	obedient   = guardtest.Worker{}
	deaf       = guardtest.Worker{Deaf: true}
	deafParent = guardtest.Worker{Deaf: true, Children: []guardtest.Worker{{Name: "child", Deaf: true}, {Name: "other", Deaf: true}}}
)

// endsInTime checks how a command ends that is not renewed, and when it was asked to and was dead, if it had a lease like this when
// it was last told.
func (c *candidate) endsInTime(r *Run, how Ending, lease, stop time.Duration) {
	c.Helper()
	got := c.rest(r)
	if c.swept(got) {
		guardtest.TooLate(c.T, "the kernel's timer was faster")
	}
	if want := []Event{{Ended: &how}, {Empty: true}}; !reflect.DeepEqual(got, want) {
		if how != killed && got[0].Ended != nil && *got[0].Ended == killed {
			guardtest.TooLate(c.T, "it took too long to end")
		}
		c.Errorf("got %s, want %s", show(got), show(want))
	}
	asks, answers := c.journal.Last("candidate", "asks"), c.journal.Last("candidate", "answers")
	least := lease - lease/10 // clocks may differ in rate
	if term, ok := c.journal.Find("command", "SIGTERM"); ok && term.At.Sub(asks) < least {
		c.Errorf("it was asked to end %v after it was told that %v are left", term.At.Sub(asks), lease)
	}
	switch n := c.journal.Count("command", "SIGTERM"); {
	case n == 0:
		guardtest.TooLate(c.T, "it was killed before it was asked to end, or could say so")
	case n > 1:
		c.Errorf("it was asked to end %d times", n)
	}
	last := c.lastAct()
	if got := last.Sub(answers); got > lease+stop {
		guardtest.TooLate(c.T, "the last act was %v after it was told that %v and %v are left", got, lease, stop)
	}
	if got := last.Sub(asks); how == killed && got < least+(stop-Reserve(stop))/2 { // or it was not given any time to act
		guardtest.TooLate(c.T, "the last act was %v after it was told that %v and %v are left", got, lease, stop)
	}
}

// swept takes in what is left if the guard was killed by the kernel's timer before it has told of the end.
func (c *candidate) swept(got []Event) bool {
	c.Helper()
	if n := len(got); n > 0 && got[n-1].Empty {
		return false
	}
	c.guardDies()
	Sweep(c.pid(), nil)
	return true
}

// guardDies waits for the end of the guard.
func (c *candidate) guardDies() {
	c.Helper()
	select {
	case <-c.guard.Dead():
	case <-time.After(guardtest.Patience):
		c.Fatal("the guard does not die")
	}
	if !c.guard.Gone() || !errors.Is(c.guard.Err(), ErrDied) {
		c.Errorf("got %v, %v", c.guard.Gone(), c.guard.Err())
	}
}
