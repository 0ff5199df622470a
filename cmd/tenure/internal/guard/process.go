//go:build unix

package guard

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/clock"
	"golang.org/x/sys/unix"
)

// again is the time between two rounds of SIGKILL: a process may have started another one during
// the search for descendants. Each end of a process begins a round at once. While none ends, the
// guard waits at least perSearch times as long as it searched: a process may be in a state in which
// the kernel does not kill it, and other programs need the processors, too.
const (
	again     = 5 * time.Millisecond
	perSearch = 20
)

// unhurried is the limit of a search that nothing waits for.
const unhurried = time.Hour

var errAlone = errors.New("this command is for tenure run itself")

// mode says in which namespaces the guard runs commands. It is the guard's first argument.
type mode string

const (
	plain  mode = ""
	asRoot mode = "pid-namespace"      // in a PID namespace for each command
	asUser mode = "user-pid-namespace" // the guard is also in a user namespace
)

// initArg is the first argument of an init.
const initArg = "init"

// Main runs the guard in this process, with the arguments that Start adds. It returns when the
// candidate is gone and neither the command nor a descendant of it is left. With another argument
// this process is the init of a namespace.
func Main(args []string) error {
	m := plain
	switch first := at(args, 0); {
	case first == initArg:
		return beInit()
	case mode(first) == asRoot, mode(first) == asUser:
		m, args = mode(first), args[1:]
	}
	runtime.LockOSThread() // this thread starts the command, and must last as long as the guard
	fds, err := inherited(args)
	if err != nil {
		return err
	}
	in, out := os.NewFile(uintptr(fds[0]), "orders"), os.NewFile(uintptr(fds[1]), "reports")
	k, err := newBackstop(m, fds[2], fds[3])
	if err != nil {
		_ = (&pipe{w: out}).send(report{Unable: err.Error()})
		return err
	}
	p := &enforcer{
		clock: clock.System{}, kernel: k, reports: &pipe{w: out}, child: hearSignals(), timer: time.NewTimer(0),
	}
	defer KeepSmall(startUp)()
	p.serve(in)
	return nil
}

// startUp is the time after which a guard has started up.
const startUp = time.Second

// inherited returns the files of files.theirs. It makes them close-on-exec: none is for the
// command.
func inherited(numbers []string) (fds [4]int, err error) {
	for i := range fds {
		if fds[i], err = strconv.Atoi(at(numbers, i)); err != nil {
			return fds, errAlone
		}
		if _, err = unix.FcntlInt(uintptr(fds[i]), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return fds, errAlone
		}
	}
	return fds, nil
}

// enforcer is the guard: it starts the command and keeps its deadline.
type enforcer struct {
	clock   clock.Clock
	kernel  kernel
	orders  <-chan order
	reports *pipe
	child   <-chan os.Signal
	timer   *time.Timer

	orphaned bool     // the candidate is gone
	pending  *Command // waits for its lease to be known
	job      work
	lease    lease
	asked    bool // the command was asked to end
	killing  bool
	// leftovers is the deadline for descendants of a command that has ended; else nil.
	leftovers *lease

	surveyed   time.Time // the end of the last survey
	surveyTook time.Duration
}

// kernel holds the calls of the system: backstop.
type kernel interface {
	begin(c *Command) (work, error)
	arm(now clock.Reading, next, due, kill time.Duration)
	disarm()
}

// work is a command that runs, with all its descendants: a job.
type work interface {
	process() int
	signal(s syscall.Signal)
	ask(s syscall.Signal, within time.Duration)
	kill()
	search(within time.Duration)
	collect() (end *Ending, empty bool)
}

// hearSignals returns the channel of SIGCHLD. It also catches the signals that may end the
// candidate, and drops them: they must not end the guard. Signals that are ignored stay ignored,
// since the command inherits that.
func hearSignals() (child <-chan os.Signal) {
	ofChildren := make(chan os.Signal, 1)
	signal.Notify(ofChildren, unix.SIGCHLD)
	deaf := make(chan os.Signal, 1)
	for _, s := range Forwarded {
		if !signal.Ignored(s) {
			signal.Notify(deaf, s)
		}
	}
	// the command inherits this: Ctrl-Z must not stop a leader, since the shell could not resume it
	signal.Ignore(unix.SIGTSTP)
	return ofChildren
}

// Forwarded are the signals that tenure passes on to the command.
var Forwarded = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
}

// serve obeys the orders that it reads. It returns when there are no more orders, and neither the
// command nor a descendant of it is left.
func (p *enforcer) serve(in io.Reader) {
	orders := make(chan order)
	go func() {
		receive(in, func(o order) { orders <- o })
		close(orders)
	}()
	p.orders = orders
	_ = p.reports.send(report{Ready: true})
	p.loop()
}

func (p *enforcer) loop() {
	for !p.orphaned || p.job != nil {
		p.act()
		select {
		case o, ok := <-p.orders:
			if ok {
				p.obey(o)
			} else {
				p.candidateGone()
			}
		case <-p.child:
			p.collect()
		case <-p.timer.C:
			p.collect()
		}
	}
}

func (p *enforcer) obey(o order) {
	switch {
	case o.Run != nil:
		p.pending = o.Run
		p.lease.forget()
		p.ask()
	case o.Renewed:
		p.ask()
	case o.Left != nil:
		p.lease.answer(*o.Left)
		p.survey()
		p.start()
	// the command waits for its start, and would be ended at once: it is not started
	case p.pending != nil && (o.Kill || o.Signal != nil && o.Signal.All):
		p.pending = nil
		_ = p.reports.send(report{Empty: true})
	case o.Signal != nil && p.job != nil:
		p.forward(*o.Signal)
	case o.Kill:
		p.killing = true
	}
}

// ask asks the candidate for the remaining time, which counts from before this question.
func (p *enforcer) ask() {
	_ = p.reports.send(report{Question: p.lease.ask(p.clock.Now())})
}

// survey searches for the descendants of the command after a renewal, so that the killer knows them
// before the deadline. It takes a hundredth of the time at most.
func (p *enforcer) survey() {
	over := p.lease.over(p.clock.Now())
	if p.job == nil || over <= 0 || time.Since(p.surveyed) < 100*p.surveyTook {
		return
	}
	began := time.Now()
	p.job.search(over / 4)
	p.surveyed, p.surveyTook = time.Now(), time.Since(began)
}

// candidateGone asks the command to end, since the lease will not be renewed any more. The command
// has time until the known deadline.
func (p *enforcer) candidateGone() {
	p.orders, p.orphaned, p.pending = nil, true, nil
	p.finish()
}

func (p *enforcer) forward(f forward) {
	if f.All {
		p.signalAll(syscall.Signal(f.Number))
		return
	}
	p.job.signal(syscall.Signal(f.Number))
}

// start starts the pending command once its deadline is known.
func (p *enforcer) start() {
	c := p.pending
	if c == nil || !p.lease.known || p.job != nil {
		return
	}
	p.pending = nil
	now := p.clock.Now()
	if p.lease.over(now) <= 0 {
		_ = p.reports.send(report{Empty: true})
		return
	}
	p.asked, p.killing, p.leftovers = false, false, nil
	p.arm(now, p.lease.over(now)) // before there is anything to kill
	j, err := p.kernel.begin(c)
	switch p.job = j; {
	case err == nil:
		_ = p.reports.send(report{Started: j.process()})
		return
	case j != nil: // it runs, but without the tripwire
		p.killing = true
	}
	_ = p.reports.send(report{Failed: failedBy(err)})
	if j == nil {
		p.kernel.disarm()
		_ = p.reports.send(report{Empty: true})
	}
}

// arm sets the kernel's timers, for the case that this process is stopped. The first continues it
// in time for its next step. The second kills it if that did not help, such as under a debugger. A
// guard that runs when the lease is over is not under one, but perhaps late on a busy machine: then
// it may use the whole reserve. The kernel's timers run on clocks that may be slewed. So a timer
// that is far away is set earlier, but after the next call of act, which sets it again.
func (p *enforcer) arm(now clock.Reading, next time.Duration) {
	reserve := Reserve(p.lease.stop)
	if p.lease.over(now) > 0 {
		reserve /= 2
	}
	after := p.lease.kill(now) + reserve
	if after > far {
		after -= after / slewed
	}
	p.kernel.arm(now, next, p.killIn(now), after)
}

// often is the time between two looks at the clock, on systems where timers may stand still while
// the machine sleeps, but the clock goes on.
const often = 200 * time.Millisecond

// Above far it matters that a time daemon may slew a clock, by 8.3 %: one part in slewed.
const (
	far    = 100 * time.Millisecond
	slewed = 12
)

// act does what is due. It sets one timer that wakes it for the next step, and the kernel's timers
// in case that this process does not run then.
func (p *enforcer) act() {
	if p.job == nil {
		return
	}
	if p.lease.over(p.clock.Now()) <= 0 {
		p.finish()
	}
	now := p.clock.Now() // finish may have searched for a while
	left := p.killIn(now)
	if left <= 0 || p.killing {
		p.kill()
		return
	}
	if over := p.lease.over(now); over > 0 {
		left = min(left, over)
	}
	p.arm(now, left)
	p.timer.Reset(p.soon(left))
}

// kill sends SIGKILL to all processes that are known, and then to those that a search finds. From
// then on the kernel does not kill the guard, however long the search takes: the group is dead, so
// the guard's death would end no other process, and nothing would look for these.
func (p *enforcer) kill() {
	p.killing = true
	p.job.kill()
	p.kernel.arm(p.clock.Now(), again, 0, 0)
	began := time.Now()
	p.job.search(unhurried)
	took := time.Since(began)
	p.job.kill()
	p.timer.Reset(max(again, perSearch*took))
}

// killIn returns the time until SIGKILL for the running command or its leftovers.
func (p *enforcer) killIn(now clock.Reading) time.Duration {
	left := p.lease.kill(now)
	if p.leftovers != nil {
		left = min(left, p.leftovers.kill(now))
	}
	return left
}

// soon returns the time until the next look at the clock. It is before a far deadline, since timers
// run on a clock that may be slewed.
func (p *enforcer) soon(left time.Duration) time.Duration {
	switch {
	case FindsOrphans:
	case p.leftovers != nil:
		return again // no event reports their end
	default:
		left = min(left, often)
	}
	if left > far {
		return left - left/8
	}
	return left
}

// finish asks the command to end, once.
func (p *enforcer) finish() {
	if p.job != nil && !p.asked {
		p.asked = true
		p.signalAll(unix.SIGTERM)
	}
}

// signalAll sends a signal to the command and all its descendants. The search for them does not
// delay SIGKILL.
func (p *enforcer) signalAll(s syscall.Signal) {
	p.job.ask(s, p.killIn(p.clock.Now()))
}

// collect reports the end of the command, and then the end of all its descendants.
func (p *enforcer) collect() {
	if p.job == nil {
		return
	}
	end, empty := p.job.collect()
	if end != nil {
		// the killer may have been first
		end.Forced = p.asked || p.killing || p.killIn(p.clock.Now()) <= 0
		_ = p.reports.send(report{Ended: end})
	}
	switch {
	case empty:
		p.kernel.disarm()
		p.job, p.leftovers = nil, nil
		_ = p.reports.send(report{Empty: true})
	case end != nil: // the processes that it left behind must not act for a former leader
		p.leftovers = &lease{from: p.clock.Now(), stop: p.lease.stop}
		p.signalAll(unix.SIGTERM)
	}
}

// lease is the deadline of the command, as the guard knows it.
type lease struct {
	question uint64 // the number of the last question
	asked    clock.Reading

	known bool
	from  clock.Reading // counted from here
	left  time.Duration
	stop  time.Duration
}

// ask notes the time of a new question, and returns its number.
func (l *lease) ask(now clock.Reading) uint64 {
	l.question, l.asked = l.question+1, now
	return l.question
}

// answer takes the time that remained at some moment after the question. It may be less than
// before. It ignores answers to earlier questions. It also ignores that no time is left if the
// deadline had passed before the question: otherwise the time to stop would begin again.
func (l *lease) answer(a left) {
	if a.Question != l.question || a.Left <= 0 && l.known && l.over(l.asked) <= 0 {
		return
	}
	l.known, l.from, l.left, l.stop = true, l.asked, max(a.Left, 0), a.Stop
}

// forget drops the remaining time before the next command, as it may be that of another term.
func (l *lease) forget() { l.known = false }

// over returns the time until the lease's own deadline.
func (l *lease) over(now clock.Reading) time.Duration {
	return l.left - now.LeaderSince(l.from.Instant)
}

// kill returns the time until SIGKILL.
func (l *lease) kill(now clock.Reading) time.Duration { return l.over(now) + l.stop - Reserve(l.stop) }

// Reserve returns the last part of StopWithin, which is reserved for SIGKILL: a quarter, at most a
// second. The guard sends SIGKILL when it begins. After half of it the kernel's timer kills a guard
// that has not run since the lease was over, and after all of it one that has not sent SIGKILL. An
// overloaded machine was seen to need more than 0.3 s.
func Reserve(stop time.Duration) time.Duration { return min(stop/4, time.Second) }

// giveBackEvery is the time between two releases of pages. For example, a lost connection touches
// many pages of the program that are not needed again for days.
const giveBackEvery = time.Minute

// KeepSmall keeps the memory of a mostly waiting process small. After the time that the process
// needs to start, it releases free memory, and the pages of the program's own file. It releases
// these pages again each minute, until stop is called.
func KeepSmall(after time.Duration) (stop func() bool) {
	return keepSmall(after, debug.FreeOSMemory, giveBackPages)
}

func keepSmall(after time.Duration, freeMemory, givePages func()) (stop func() bool) {
	first := true
	var stopped atomic.Bool
	var timer *time.Timer
	timer = time.AfterFunc(giveBackEvery, func() {
		if first {
			// releasing free memory each time would cost more: the collector needs some for its own
			// work
			freeMemory()
		}
		first = false
		givePages()
		if !stopped.Load() {
			timer.Reset(giveBackEvery)
		}
	})
	timer.Reset(after)
	return func() bool {
		stopped.Store(true)
		return timer.Stop()
	}
}
