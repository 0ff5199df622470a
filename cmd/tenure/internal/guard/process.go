//go:build unix

package guard

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/clock"
	"golang.org/x/sys/unix"
)

// again is the time between two rounds of killing: a process may have started another during the
// search.
const again = 5 * time.Millisecond

var errAlone = errors.New("this command is for tenure run itself")

// Main is the guard process, which is given the numbers of its files. It returns when the candidate
// is gone and nothing is left of the command.
func Main(numbers []string) error {
	runtime.LockOSThread() // which starts the command, and must last as long as the guard
	fds, err := inherited(numbers)
	if err != nil {
		return err
	}
	in, out := os.NewFile(uintptr(fds[0]), "orders"), os.NewFile(uintptr(fds[1]), "reports")
	l, err := newLines(fds[2], fds[3])
	if err != nil {
		_ = (&pipe{w: out}).send(report{Unable: err.Error()})
		return err
	}
	p := &process{
		clock: clock.System{}, kernel: l, reports: &pipe{w: out}, child: hearSignals(), timer: time.NewTimer(0),
	}
	defer KeepSmall(settled)()
	p.serve(in)
	return nil
}

// settled is when a guard has nothing to do but to wait.
const settled = time.Second

// inherited are the files that the candidate has given, see files.theirs: none of them is for the
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

// process is the guard.
type process struct {
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
	asked    bool // the command was asked to end, for good
	killing  bool
	// leftovers of a command that has ended have until then.
	leftovers *lease
}

// kernel is what the guard asks of the system: lines.
type kernel interface {
	begin(c *Command) (work, error)
	arm(now clock.Reading, after time.Duration)
	disarm()
}

// work is a command that runs, and all that came of it: a job.
type work interface {
	process() int
	signal(s syscall.Signal)
	signalAll(s syscall.Signal)
	ask(s syscall.Signal)
	finish()
	collect() (end *Ending, empty bool)
}

// hearSignals begins to hear of children, and becomes deaf to everything else that may be heard:
// what ends the candidate must not end the guard. Signals that are ignored stay so, for the
// command's sake.
func hearSignals() (child <-chan os.Signal) {
	ofChildren := make(chan os.Signal, 1)
	signal.Notify(ofChildren, unix.SIGCHLD)
	deaf := make(chan os.Signal, 1)
	for _, s := range Forwarded {
		if !signal.Ignored(s) {
			signal.Notify(deaf, s)
		}
	}
	// the command inherits this: a leader is not suspended from the keyboard, where it could not be
	// resumed
	signal.Ignore(unix.SIGTSTP)
	return ofChildren
}

// Forwarded are the signals that concern the command.
var Forwarded = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
}

// serve obeys the orders that it reads, and returns when there are no more and nothing is left of
// the command.
func (p *process) serve(in io.Reader) {
	orders := make(chan order)
	go func() {
		receive(in, func(o order) { orders <- o })
		close(orders)
	}()
	p.orders = orders
	_ = p.reports.send(report{Ready: true})
	p.loop()
}

func (p *process) loop() {
	for !p.orphaned || p.job != nil {
		p.act()
		select {
		case o, ok := <-p.orders:
			if ok {
				p.obey(o)
			} else {
				p.bereaved()
			}
		case <-p.child:
			p.collect()
		case <-p.timer.C:
			p.collect()
		}
	}
}

func (p *process) obey(o order) {
	switch {
	case o.Run != nil:
		p.pending = o.Run
		p.lease.forget()
		p.ask()
	case o.Renewed:
		p.ask()
	case o.Left != nil:
		p.lease.answer(*o.Left)
		p.start()
	// a command that would be ended at once is not started
	case p.pending != nil && (o.Kill || o.Signal != nil && o.Signal.All):
		p.pending = nil
		_ = p.reports.send(report{Empty: true})
	case o.Signal != nil && p.job != nil:
		p.forward(*o.Signal)
	case o.Kill:
		p.killing = true
	}
}

// ask: nothing that the candidate says of time counts from later than this.
func (p *process) ask() {
	_ = p.reports.send(report{Question: p.lease.ask(p.clock.Now())})
}

// bereaved: the lease will not be renewed any more, so the command should end; it has until the
// known deadline.
func (p *process) bereaved() {
	p.orders, p.orphaned, p.pending = nil, true, nil
	p.finish()
}

func (p *process) forward(f forward) {
	if f.All {
		p.job.ask(syscall.Signal(f.Number))
		return
	}
	p.job.signal(syscall.Signal(f.Number))
}

// start runs the command once it is known until when it may run.
func (p *process) start() {
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
	p.arm(now, p.lease.kill(now)) // before there is anything to kill
	j, err := p.kernel.begin(c)
	switch p.job = j; {
	case err == nil:
		_ = p.reports.send(report{Started: j.process()})
		return
	case j != nil: // it runs, but the lines could not be tied
		p.killing = true
	}
	_ = p.reports.send(report{Failed: failedBy(err)})
	if j == nil {
		p.kernel.disarm()
		_ = p.reports.send(report{Empty: true})
	}
}

// arm sets the kernel's timer, for the case that this process is stopped. The kernel has no timer
// on a clock that is not slewed, so a distant one is set earlier, but later than the next look,
// which sets it again.
func (p *process) arm(now clock.Reading, kill time.Duration) {
	after := kill + Reserve(p.lease.stop)/2
	if after > far {
		after -= after / slewed
	}
	p.kernel.arm(now, after)
}

// often is how often a guard looks at its clock where timers may stand still while the machine
// sleeps, and the clock goes on.
const often = 200 * time.Millisecond

// far is a time over which it matters that a time daemon may slew a clock: by 8.3 %, one part in
// this many.
const (
	far    = 100 * time.Millisecond
	slewed = 12
)

// act does what is due, and arranges that it is woken, or killed, when the next thing is.
func (p *process) act() {
	if p.job == nil {
		return
	}
	now := p.clock.Now()
	if p.lease.over(now) <= 0 {
		p.finish()
	}
	if kill := p.lease.kill(now); kill > 0 {
		p.arm(now, kill)
	}
	left := p.killIn(now)
	if left <= 0 || p.killing {
		p.killing = true
		p.job.signalAll(unix.SIGKILL)
		p.timer.Reset(again)
		return
	}
	next := left
	if over := p.lease.over(now); over > 0 {
		next = min(next, over)
	}
	p.timer.Reset(p.soon(next))
}

// killIn is the time that is left to the running command.
func (p *process) killIn(now clock.Reading) time.Duration {
	left := p.lease.kill(now)
	if p.leftovers != nil {
		left = min(left, p.leftovers.kill(now))
	}
	return left
}

// soon looks at a far deadline before it is due: timers run on a clock that may be slewed.
func (p *process) soon(left time.Duration) time.Duration {
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
func (p *process) finish() {
	if p.job != nil && !p.asked {
		p.asked = true
		p.job.finish()
	}
}

// collect hears of the end of the command, and then of the end of all that came of it.
func (p *process) collect() {
	if p.job == nil {
		return
	}
	end, empty := p.job.collect()
	if end != nil {
		end.Forced = p.asked || p.killing
		_ = p.reports.send(report{Ended: end})
	}
	switch {
	case empty:
		p.kernel.disarm()
		p.job, p.leftovers = nil, nil
		_ = p.reports.send(report{Empty: true})
	case end != nil:
		p.tidy()
	}
}

// tidy ends what the command left behind, which must not act for a former leader.
func (p *process) tidy() {
	p.leftovers = &lease{from: p.clock.Now(), stop: p.lease.stop}
	p.job.finish()
}
