//go:build integration && unix

package guard

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// long is a lease that outlasts every test.
const long = time.Minute

// candidate is a test with a guard.
type candidate struct {
	*testing.T
	guard   *Guard
	journal *guardtest.Journal
	left    atomic.Int64
}

func newCandidate(t *testing.T) *candidate { t.Helper(); return candidateOf(t, guardtest.Guard()) }

// candidateOf returns a candidate with a guard of this command line.
func candidateOf(t *testing.T, guard *exec.Cmd) *candidate {
	t.Helper()
	g, err := Start(guard)
	must.OK(t, err)
	t.Cleanup(g.Close)
	return &candidate{T: t, guard: g, journal: guardtest.NewJournal(guardtest.Dir(t))}
}

// withCandidate runs a test with a candidate, in a process of its own.
func withCandidate(t *testing.T, test func(t *testing.T, c *candidate)) {
	t.Helper()
	guardtest.Alone(t, func(t *testing.T) { test(t, newCandidate(t)) })
}

// runs runs a command under a long lease, and checks how it ends.
func (c *candidate) runs(command Command, how Ending) {
	c.Helper()
	c.ends(c.start(command, long), how)
}

// worker returns a command that writes the journal.
func (c *candidate) worker(w guardtest.Worker) Command {
	w.Journal = c.journal.Path
	if w.Name == "" {
		w.Name = "command"
	}
	return NewCommand(guardtest.Self(), append([]string{"worker"}, w.Args()...), os.Environ())
}

// shell runs a shell script.
func shell(script string, env ...string) Command {
	return NewCommand("/bin/sh", []string{"sh", "-c", script}, append(os.Environ(), env...))
}

// lease returns a function that answers the guard's request for the remaining time. The time is
// long at first. The function first notes the request in the journal, because the guard must count
// from before the answer.
func (c *candidate) lease() func() time.Duration {
	c.left.Store(int64(long))
	return func() time.Duration {
		c.journal.Add("candidate", "answers")
		return time.Duration(c.left.Load())
	}
}

// start starts a command under a long lease.
func (c *candidate) start(command Command, stop time.Duration) *Run {
	c.Helper()
	r := c.guard.Run(command, c.lease(), stop)
	if e, ok := c.next(r); !ok || e.Started <= 0 || e != (Event{Started: e.Started}) {
		c.Fatalf("not started, but %+v", e)
	}
	return r
}

// run starts a command and waits until it and all its children run. Then it shortens the lease to
// left.
func (c *candidate) run(w guardtest.Worker, left, stop time.Duration) *Run {
	c.Helper()
	r := c.start(c.worker(w), stop)
	_ = c.pid()
	c.shorten(left)
	return r
}

// shorten makes the guard learn that only left remains.
func (c *candidate) shorten(left time.Duration) {
	c.Helper()
	c.journal.Add("candidate", "shortens")
	c.left.Store(int64(left))
	c.renew()
	c.renew() // the guard has received the first answer
}

// renew returns when the guard has asked for the remaining time.
func (c *candidate) renew() {
	c.Helper()
	before := c.journal.Count("candidate", "answers")
	c.guard.Renewed()
	wait.Until(c.T, "the guard asks", func() bool { return c.journal.Count("candidate", "answers") > before })
}

// pid returns the process ID of the command, which is also the ID of its group.
func (c *candidate) pid() int {
	c.Helper()
	return c.journal.Await(c.T, "command", "begin").PID
}

// next returns the next event. After the last event, ok is false.
func (c *candidate) next(r *Run) (e Event, ok bool) {
	c.Helper()
	select {
	case e, ok = <-r.Events:
	case <-wait.Context(c.T).Done():
		c.Fatal("there is no next event")
	}
	return e, ok
}

// rest returns all remaining events.
func (c *candidate) rest(r *Run) (all []Event) {
	c.Helper()
	for e, ok := c.next(r); ok; e, ok = c.next(r) {
		all = append(all, e)
	}
	return all
}

// expect checks all remaining events.
func (c *candidate) expect(r *Run, want ...Event) {
	c.Helper()
	if got := c.rest(r); !reflect.DeepEqual(got, want) {
		c.Errorf("got %s, want %s", show(got), show(want))
	}
}

// ends checks how the command ends, and that no process of it runs after that.
func (c *candidate) ends(r *Run, how Ending) {
	c.Helper()
	c.expect(r, Event{Ended: &how}, Event{Empty: true})
	c.nothingRuns()
}

func (c *candidate) nothingRuns() {
	c.Helper()
	if pid := c.journal.Alive(""); pid != 0 {
		c.Errorf("process %d runs after the last event", pid)
	}
}

func show(all []Event) string {
	text, _ := json.Marshal(all)
	return string(text)
}

var (
	killed     = Ending{Signal: int(syscall.SIGKILL), Forced: true}
	obedient   = guardtest.Worker{}
	deafParent = guardtest.Worker{Deaf: true, Children: []guardtest.Worker{{Name: "child", Deaf: true}, {Name: "other", Deaf: true}}}
)

// isKilled checks that a deaf command is killed, but not before its shortened lease and its stop
// time are over. The guard kills it. If the guard is too slow, the kernel kills the guard and so
// the command.
func (c *candidate) isKilled(r *Run, lease, stop time.Duration) {
	c.Helper()
	got := c.rest(r)
	if c.lasted(lease + stop - Reserve(stop)); c.swept(got) {
		return
	}
	if want := []Event{{Ended: &killed}, {Empty: true}}; !reflect.DeepEqual(got, want) {
		c.Errorf("got %s, want %s", show(got), show(want))
	}
	c.nothingRuns()
	shortened := c.journal.Last("candidate", "shortens")
	if term, ok := c.journal.Find("command", "SIGTERM"); ok && term.At.Sub(shortened) < lease-lease/10 {
		c.Errorf("it was asked to end %v after the lease was shortened to %v", term.At.Sub(shortened), lease)
	}
	if n := c.journal.Count("command", "SIGTERM"); n > 1 {
		c.Errorf("it was asked to end %d times", n)
	}
}

// lasted checks that at least this time has passed since the lease was shortened. Clocks may differ
// in rate.
func (c *candidate) lasted(least time.Duration) {
	c.Helper()
	if got := stamp.Now().Sub(c.journal.Last("candidate", "shortens")); got < least-least/10 {
		c.Errorf("it is over after %v, of at least %v", got, least)
	}
}

// swept reaps the remaining processes if the kernel's timer killed the guard before the guard
// reported the end.
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
	case <-wait.Context(c.T).Done():
		c.Fatal("the guard does not die")
	}
	if !c.guard.Gone() || !errors.Is(c.guard.Err(), ErrDied) {
		c.Errorf("got %v, %v", c.guard.Gone(), c.guard.Err())
	}
}
