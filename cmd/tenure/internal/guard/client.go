//go:build unix

// Package guard makes a second process enforce the deadline of a leader's command. The command is
// dead before another candidate can be elected, even if the process that leads dies, is stopped or
// hangs.
//
// The candidate starts a guard and talks to it over two pipes. The guard starts the command in a
// process group of its own. When the candidate reports a renewal, the guard reads its own clock,
// asks how much of the lease is left, and counts this time from before the question, as a leader
// counts from before its write. So no slow pipe and no stopped process makes a lease longer, and no
// two processes compare clocks.
//
//	lease's own deadline              SIGTERM, unless the candidate stopped the command before
//	a reserve before StopWithin ends  SIGKILL
//	a little later                    the kernel kills the guard
//
// On a busy machine the guard may wait for a processor. So on Linux one of its threads also sends
// SIGKILL at the deadline. This killer has real-time priority if the system allows that.
//
// The last line is for a guard that does not act. On Linux it keeps two timers in the kernel. One
// continues a guard that is stopped, before each step. The other sends SIGKILL to a guard that has
// not sent it to the command's process group in time. A guard that dies takes the command along in
// two ways: by the parent-death signal, and by a tripwire. The tripwire is a pair of sockets. Only
// the guard holds one end; when it is closed, the kernel sends SIGKILL to the command's whole
// process group by way of the other end. On other systems the candidate has to do that.
//
// Processes outside of the group are found by a search for descendants: by the guard, or after its
// death by the candidate. If both are dead, only a PID namespace ends them: see Isolate. Its first
// process, the init, gets the parent-death signal, and the kernel kills all others with it.
package guard

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrDied says that the guard has died, for any reason.
var ErrDied = errors.New("the guard has died")

// Guard is the candidate's side of a guard process. Its methods may be called concurrently.
type Guard struct {
	pid     int
	kill    func() error // kills the process
	orders  *pipe
	closing func() // closes the orders

	mu  sync.Mutex
	run *Run // the present one

	ready  chan struct{} // closed when it can run commands
	unable string        // the reason why it cannot; set before dead is closed
	dead   chan struct{} // closed when it has ended and all its reports were read
	why    error         // the reason of its end; set before dead is closed
}

// Run is one run of a command under a guard.
type Run struct {
	// Events report its progress in order. The channel is closed after an event with Empty, or when
	// the guard dies.
	Events <-chan Event
	events chan Event
	left   func() time.Duration
	stop   time.Duration
	over   bool
}

// Event is one thing that happened to a command; one field is set. Started is its process. After
// Empty neither the command nor a descendant of it is left.
type Event struct {
	Started int
	Failed  *StartError
	Ended   *Ending
	Empty   bool
}

// StartError is the reason why a command could not be started.
type StartError struct {
	Text    string `json:"error"`
	Missing bool   `json:"missing,omitempty"` // there is no such file
	Passing bool   `json:"passing,omitempty"` // the machine had no room for it just then
}

func (e *StartError) Error() string { return e.Text }

// Start starts a guard: command must end in a call of Main with the arguments that Start adds. The
// guard ends when this process does. Its standard files are also those of the commands that it
// runs; by default it inherits them. Start returns when the guard is ready. It may be called
// concurrently. Do not start other processes meanwhile: they would inherit the guard's files, and
// the guard's end would go unnoticed.
func Start(command *exec.Cmd) (*Guard, error) { return start(command, startWithin) }

func start(command *exec.Cmd, within time.Duration) (*Guard, error) {
	f, err := fork(command)
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	g := newGuard(f.orders, f.close, command.Process.Kill)
	g.pid = command.Process.Pid
	go g.listen(f.reports, func() error {
		defer forget(g.pid)
		return command.Wait()
	})
	if err := g.await(within); err != nil {
		f.close()
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return g, nil
}

// alive has the guards of this process that have not been waited for, by process ID. Its lock is
// held while a guard is forked: until then this process holds the guard's side of its files, which
// no other guard may inherit.
var alive = struct {
	sync.Mutex
	guards map[int]bool
}{guards: map[int]bool{}}

// fork starts the process of a guard, and returns this side of its files.
func fork(command *exec.Cmd) (*files, error) {
	alive.Lock()
	defer alive.Unlock()
	f, err := newFiles()
	if err != nil {
		return nil, err
	}
	command.Args = append(command.Args, f.numbers()...)
	if command.Stdin == nil && command.Stdout == nil && command.Stderr == nil {
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true // signals from the terminal are not for the guard
	err = command.Start()
	f.given()
	if err != nil {
		f.close()
		return nil, err
	}
	alive.guards[command.Process.Pid] = true
	return f, nil
}

func forget(pid int) {
	alive.Lock()
	defer alive.Unlock()
	delete(alive.guards, pid)
}

func newGuard(orders io.Writer, closing func(), kill func() error) *Guard {
	return &Guard{
		kill: kill, orders: &pipe{w: orders}, closing: closing,
		ready: make(chan struct{}), dead: make(chan struct{}),
	}
}

// startWithin is the time for the guard to get ready, on a busy machine.
const startWithin = 10 * time.Second

// await returns nil when the guard is ready, or the reason why it cannot be: for example, the
// system may forbid a call that it needs.
func (g *Guard) await(within time.Duration) error {
	defer time.AfterFunc(within, g.Abandon).Stop()
	select {
	case <-g.ready:
		return nil
	case <-g.dead:
	}
	if g.unable != "" {
		return errors.New(g.unable)
	}
	return g.why
}

// listen reads the reports of the guard until its end, and then calls wait.
func (g *Guard) listen(reports io.ReadCloser, wait func() error) {
	receive(reports, g.hear)
	_ = reports.Close()
	_ = g.kill() // it may have sent an invalid report
	why := wait()
	if why == nil {
		why = errors.New("it has ended")
	}
	g.why = fmt.Errorf("%w: %w", ErrDied, why)
	g.mu.Lock()
	if g.run != nil {
		g.run.end()
	}
	g.mu.Unlock()
	close(g.dead)
}

func (g *Guard) hear(r report) {
	g.mu.Lock()
	run := g.run
	g.mu.Unlock()
	switch {
	case r.Ready:
		close(g.ready)
	case r.Unable != "":
		g.unable = r.Unable
	case run == nil:
	case r.Question != 0:
		_ = g.orders.send(order{Left: &left{r.Question, run.left(), run.stop}})
	default:
		run.hear(r)
	}
}

func (r *Run) hear(from report) {
	switch {
	case r.over:
	case from.Started != 0:
		r.events <- Event{Started: from.Started}
	case from.Failed != nil:
		r.events <- Event{Failed: from.Failed}
	case from.Ended != nil:
		r.events <- Event{Ended: from.Ended}
	case from.Empty:
		r.events <- Event{Empty: true}
		r.end()
	}
}

func (r *Run) end() {
	if !r.over {
		r.over = true
		close(r.events)
	}
}

// Run makes the guard run a command. Left returns the time that remains of the lease; the command
// may run for that time, and for at most stop longer. Only one command may run at a time: start the
// next after the events of the last have ended.
func (g *Guard) Run(c Command, left func() time.Duration, stop time.Duration) *Run {
	events := make(chan Event, 4) // each kind comes once at most
	r := &Run{Events: events, events: events, left: left, stop: stop}
	g.mu.Lock()
	g.run = r
	g.mu.Unlock()
	if g.orders.send(order{Run: &c}) != nil {
		<-g.dead
		g.mu.Lock()
		defer g.mu.Unlock()
		r.end()
	}
	return r
}

// Renewed tells the guard to ask for the remaining time again. Call it after each renewal.
func (g *Guard) Renewed() { _ = g.orders.send(order{Renewed: true}) }

// Signal passes a signal on: to the command alone, or to all its descendants too.
func (g *Guard) Signal(s syscall.Signal, all bool) {
	_ = g.orders.send(order{Signal: &forward{int(s), all}})
}

// Kill ends the command and all its descendants at once.
func (g *Guard) Kill() { _ = g.orders.send(order{Kill: true}) }

// Gone reports whether the guard has died.
func (g *Guard) Gone() bool {
	select {
	case <-g.dead:
		return true
	default:
		return false
	}
}

// Dead returns a channel that is closed when the guard has died. Then Err returns the reason.
func (g *Guard) Dead() <-chan struct{} { return g.dead }

// Err returns an error that wraps ErrDied, once Dead is closed.
func (g *Guard) Err() error { return g.why }

// PID returns the process number of the guard.
func (g *Guard) PID() int { return g.pid }

// Abandon kills a guard that does not do its work, and with it the command.
func (g *Guard) Abandon() { _ = g.kill() }

// closeWithin is the time for the guard to end when no command runs.
const closeWithin = time.Second

// Close ends a guard when no command runs.
func (g *Guard) Close() {
	g.closing()
	defer time.AfterFunc(closeWithin, g.Abandon).Stop() // for a guard that is stopped or hangs
	<-g.dead
}

// Sweep is for a candidate whose guard has died. It kills what is left of the command, whose
// process was pid, and returns true when nothing is left. On Linux the kernel has done so already,
// except for processes that have left the process group; these are found if Adopt was called before
// the guard was started. This process must not have started another child since, except for guards,
// whose commands go on. Processes of another user cannot be killed, so Sweep waits for them. One
// second after giveUp was closed, it returns false.
func Sweep(pid int, giveUp <-chan struct{}) bool {
	var late <-chan time.Time
	for {
		if pid != 0 {
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
		left := killOrphans()
		if left == 0 && (pid == 0 || errors.Is(unix.Kill(-pid, 0), unix.ESRCH)) {
			return true
		}
		select {
		case <-time.After(again):
		case <-giveUp:
			giveUp, late = nil, time.After(time.Second)
		case <-late:
			return false
		}
	}
}

// killOrphans kills the descendants of this process that have no guard, and returns how many there
// were.
func killOrphans() (found int) {
	alive.Lock()
	defer alive.Unlock()
	left, _ := descendants(os.Getpid(), notOrphans(), unhurried)
	for _, orphan := range left {
		orphan.signal(unix.SIGKILL)
		_, _ = unix.Wait4(orphan.pid, nil, unix.WNOHANG, nil) // fails for other children
	}
	return len(left)
}

// notOrphans returns the children of this process that are no orphans. The caller holds the lock.
func notOrphans() map[int]bool {
	all := maps.Clone(others)
	if all == nil {
		all = map[int]bool{}
	}
	maps.Copy(all, alive.guards)
	return all
}
