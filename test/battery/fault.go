package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/overlay"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// fault is a fault of one candidate, or of the server.
type fault struct {
	name string
	// begin injects the fault. It returns the function that ends it, or nil if the fault has no
	// end. lasts is the time before the end, in leases.
	begin func(*candidate) (end func() error, err error)
	lasts float64
	// outage is set if no candidate can be elected before the end.
	outage bool
}

// inject injects a fault into the leader, and waits for the next worker. It returns the candidate
// that it hit.
func (s *stage) inject(f fault) *candidate {
	c, old := s.leader()
	at := s.note("%s: %s", c.id(), f.name)
	end := must(f.begin(c))
	over := time.Now().Add(time.Duration(f.lasts * float64(s.lease)))
	if f.outage {
		s.sleep(time.Until(over))
		at = must(s.relieve(c, end))
	}
	s.succeed(at, old)
	if end != nil && !f.outage {
		s.sleep(time.Until(over))
		must(s.relieve(c, end))
	}
	s.sleep(s.lease / 2) // a process that continues now may still act
	return c
}

// relieve ends a fault and returns the time.
func (s *stage) relieve(c *candidate, end func() error) (int64, error) {
	at := s.note("%s: the end of that", c.id())
	return at, end()
}

// succeed waits for the reign after another, and records the times since a fault.
func (s *stage) succeed(at int64, old reign) { s.timed(at, old, s.next(old)) }

// timed records how long after a fault the old worker acted, and when the next one began.
func (s *stage) timed(at int64, old, next reign) {
	last, first := s.watch.lastActOf(old), next.began
	s.timely(at, next)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.last = append(s.seen.last, max(time.Duration(last-at), 0))
	s.seen.next = append(s.seen.next, time.Duration(first-at))
	s.seen.idle = append(s.seen.idle, time.Duration(first-last))
}

// thawing is the time for the command to stop. It is so long that tenure continues before its end.
// A guard that then counts the whole time again lets the command live until another candidate
// leads. So the flaw shows even if both processes are late.
const thawing = 800 * time.Millisecond

// thaw stops tenure until the guard has asked the command to stop by itself, and a part of the time
// for that has passed. When tenure continues, it must not lengthen that time.
func (s *stage) thaw() {
	c, old := s.leader()
	at := s.note("%s: %s", c.id(), freeze.name)
	end := must(freeze.begin(c))
	asked := s.asked(old)
	s.sleep(thawing*9/16 + s.some(thawing/16) - time.Duration(machine.Now()-asked))
	must(s.relieve(c, end))
	s.succeed(at, old)
	s.sleep(s.lease / 2)
}

// stopGuard stops the leader's guard. The kernel continues it before the lease runs out, so the
// leader leads on.
func (s *stage) stopGuard() {
	c, old := s.leader()
	s.note("%s: %s", c.id(), freezeGuard.name)
	end := must(freezeGuard.begin(c))
	s.sleep(time.Duration(freezeGuard.lasts * float64(s.lease)))
	if next, _ := s.watch.reigns.Last(); next != old {
		s.late("%s does not lead on: the guard was continued too late", c.id())
	}
	must(s.relieve(c, end))
}

// The faults of the network between one candidate and the server. They last longer than the bound
// for the next worker.
var (
	blackhole = fault{name: "everything to and from the server is swallowed", lasts: 2.5, begin: loses((*relay.Relay).Blackhole)}
	mute      = fault{name: "requests arrive and answers are lost", lasts: 2.5, begin: loses((*relay.Relay).Mute)}
	cut       = fault{name: "its connection is reset, and new ones are refused", lasts: 2.5,
		begin: between(func(c *candidate) func() error {
			c.relay.Cut()
			return c.relay.Restore
		})}
	delay = fault{name: "everything takes 1.2 leases in each direction", lasts: 3,
		begin: between(func(c *candidate) func() error {
			c.relay.Delay(c.stage.lease * 6 / 5)
			return func() error { c.relay.Release(); return nil }
		})}
)

// loses returns a fault that loses bytes. Its end closes the connections, so that new ones begin.
func loses(how func(*relay.Relay)) func(*candidate) (func() error, error) {
	return between(func(c *candidate) func() error {
		how(c.relay)
		return func() error { c.relay.Heal(); return nil }
	})
}

// between returns a fault of the network between a candidate and the server.
func between(begin func(*candidate) (end func() error)) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		if c.relay == nil {
			return nil, rig.ErrNoServer
		}
		return begin(c), nil
	}
}

// The faults of the server. They affect all candidates.
var (
	outage = fault{name: "the server is killed, and started again after 1.5 leases", lasts: 1.5, outage: true,
		begin: func(c *candidate) (func() error, error) {
			return c.stage.server.Start, c.stage.server.Kill()
		}}
	hang = fault{name: "the server is stopped for 3 leases", lasts: 3, outage: true,
		begin: func(c *candidate) (func() error, error) {
			return c.stage.server.Resume, c.stage.server.Pause()
		}}
)

// The faults of processes. Those of two processes begin in either order.
var (
	crash       = fault{name: "tenure is killed", begin: func(c *candidate) (func() error, error) { return nil, c.Kill() }}
	crashBoth   = fault{name: "tenure and its guard are killed at once", begin: killBoth}
	crashGuard  = fault{name: "the guard is killed", begin: killGuard}
	freeze      = fault{name: "tenure is stopped", lasts: 2, begin: freezes((*candidate).alone)}
	freezeBoth  = fault{name: "tenure and its guard are stopped", lasts: 2, begin: freezes((*candidate).both)}
	freezeGuard = fault{name: "the guard is stopped", lasts: 2, begin: freezes((*candidate).guards)}
	crashFreeze = fault{name: "the guard is stopped and tenure killed", lasts: 2, begin: together(freezeGuard, crash)}
	freezeCrash = fault{name: "tenure is stopped and the guard killed", lasts: 2, begin: together(freeze, crashGuard)}
	// Only the kernel can still stop the command.
	freezeGuardLost = fault{name: "the guard is stopped, and everything to and from the server is swallowed", lasts: 2.5,
		begin: together(freezeGuard, blackhole)}
)

// together begins two faults. Its end ends both, as far as they have an end.
func together(first, second fault) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		end, err := first.begin(c)
		if err != nil {
			return nil, err
		}
		other, err := second.begin(c)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		return func() error {
			if other == nil {
				return end()
			}
			return errors.Join(end(), other())
		}, nil
	}
}

func killGuard(c *candidate) (func() error, error) {
	guard, err := c.guard()
	if err != nil {
		return nil, err
	}
	return nil, crew.Kill(guard)
}

// killBoth stops the second process first, so that it cannot act after the end of the first one.
func killBoth(c *candidate) (func() error, error) {
	pids, err := c.both()
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(crew.Freeze(pids[1]), each(pids, crew.Kill))
}

func freezes(whom func(*candidate) ([]int, error)) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		pids, err := whom(c)
		if err != nil {
			return nil, err
		}
		return func() error { return each(pids, crew.Continue) }, each(pids, crew.Freeze)
	}
}

func each(pids []int, do func(pid int) error) error {
	for _, pid := range pids {
		if err := do(pid); err != nil {
			return err
		}
	}
	return nil
}

func (c *candidate) alone() ([]int, error) { return []int{c.PID()}, nil }

func (c *candidate) guards() ([]int, error) {
	pid, err := c.guard()
	return []int{pid}, err
}

// both returns tenure and its guard in a random order.
func (c *candidate) both() ([]int, error) {
	guard, err := c.guard()
	if c.stage.even() {
		return []int{guard, c.PID()}, err
	}
	return []int{c.PID(), guard}, err
}

// flaw is a planted mistake that makes a row fail: a change to the source of tenure, or a worker.
type flaw struct {
	name string
	left string         // the part that is left out or changed
	edit []overlay.Edit // nil if the flaw is in the workers
	// shows reports whether the flaw shows in an outcome.
	shows func(outcome) bool
}

// These functions are values of flaw.shows.
func overlaps(o outcome) bool  { return o.acts.Stale > 0 }
func regresses(o outcome) bool { return o.acts.Regressed > 0 }

// broken is a binary of tenure with a flaw. It is built once.
type broken struct {
	once   sync.Once
	binary string
	err    error
}

// binary returns the path of a tenure with the flaw, or without one if f is nil.
func (b *battery) binary(f *flaw) (string, error) {
	if f == nil || f.edit == nil {
		return b.tenure, nil
	}
	b.mu.Lock()
	x := b.broken[f]
	if x == nil {
		x = &broken{}
		b.broken[f] = x
	}
	b.mu.Unlock()
	x.once.Do(func() { x.binary, x.err = f.build(b) })
	return x.binary, x.err
}

func (f *flaw) build(b *battery) (string, error) {
	dir := filepath.Join(b.bin, f.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	top, err := source()
	if err != nil {
		return "", fmt.Errorf("finding the source of tenure: %w", err)
	}
	list, err := f.overlay(top, dir)
	if err != nil {
		return "", err
	}
	return command.BuildIn(b.ctx, dir, command.Tenure, "-overlay", list)
}

// source returns the directory with the source of tenure.
var source = sync.OnceValues(func() (string, error) {
	top, err := exec.Command("go", "list", "-f", "{{.Dir}}", command.Tenure).Output()
	return strings.TrimSpace(string(top)), err
})

// overlay writes the files for go build into dir, with the source of tenure at top.
func (f *flaw) overlay(top, dir string) (string, error) {
	list, err := overlay.Write(top, dir, f.edit)
	if err != nil {
		return "", fmt.Errorf("flaw %s: %w", f.name, err)
	}
	return list, nil
}

// The files in which the flaws are planted.
const (
	guardProcess = "internal/guard/process.go"
	guardLease   = "internal/guard/process.go"
	guardJob     = "internal/guard/job.go"
	guardLines   = "internal/guard/backstop_linux.go"
	guardSweep   = "internal/guard/client.go"
	guardedRun   = "internal/guarded/run.go"
	wrapToken    = "internal/wrap/wrap.go"
	runGuard     = "candidate.go"
)

// Edits that several flaws have in common.
var (
	// The guard obeys tenure, but does nothing at its own deadlines.
	noDeadline = overlay.Edit{File: guardProcess, Old: "	if p.job == nil {\n		return\n	}\n	if p.lease.over",
		New: "	if p.job == nil || !p.killing && p.leftovers == nil {\n		return\n	}\n	if p.lease.over"}
	noBereavement = overlay.Edit{File: guardProcess, Old: "	p.orders, p.orphaned, p.pending = nil, true, nil\n	p.finish()",
		New: "	p.orders, p.orphaned, p.pending = nil, true, nil"}
	noTimer = overlay.Edit{File: guardLines, Old: "	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at)), Interval: unix.NsecToTimespec(int64(interval))}",
		New: "	spec := unix.ItimerSpec{}\n	_, _ = at, interval"}
	noKiller   = overlay.Edit{File: guardLines, Old: "	if d == nil || t == nil {", New: "	if true {"}
	noParent   = overlay.Edit{File: guardLines, Old: "{ attr.Pdeathsig = unix.SIGKILL }", New: "{}"}
	noTripwire = overlay.Edit{File: guardLines, Old: "	fd := uintptr(b.trip)\n", New: "	if group > 0 {\n		return nil\n	}\n	fd := uintptr(b.trip)\n"}
	noSweep    = overlay.Edit{File: guardedRun, Old: "	r.sweep()\n", New: ""}
	// Tenure does not kill a guard that is late.
	noAbandon = overlay.Edit{File: guardedRun, Old: "			defer time.AfterFunc(r.last(), g.Abandon).Stop()\n", New: ""}
)

// The flaws, each with the function that detects it in the rows that name it.
var (
	noGuard = &flaw{"no-guard", "the guard: no process stops the command when tenure dies or is stopped, nor does the kernel when both do",
		[]overlay.Edit{noDeadline, noKiller, noBereavement, noTimer, noParent, noTripwire}, overlaps}
	noKernelTimer = &flaw{"no-kernel-timer", "the kernel's timers, which continue a guard that is stopped, and kill it", []overlay.Edit{noTimer}, overlaps}
	noLastLines   = &flaw{"no-last-lines", "the death of the command when its guard dies: by its parent-death signal, by the tripwire, and by tenure",
		[]overlay.Edit{noParent, noTripwire, noSweep}, overlaps}
	deadlineIgnored = &flaw{"deadline-ignored", "the deadline: the command runs on when the lease is lost", []overlay.Edit{noDeadline, noKiller, noTimer, noAbandon}, overlaps}
	noTimeToStop    = &flaw{"no-time-to-stop", "the part of the lease that is kept for the command to stop in", []overlay.Edit{
		{File: runGuard, Old: "StopWithin: r.stopWithin, ", New: ""},
		{File: guardedRun, Old: "r.Term.Remaining, r.StopWithin", New: "r.Term.Remaining, 500*time.Millisecond"},
		{File: guardedRun, Old: "{ return r.StopWithin - guard.Reserve(r.StopWithin)/2 }",
			New: "{ return 500*time.Millisecond - guard.Reserve(500*time.Millisecond)/2 }"}}, overlaps}
	noLatch = &flaw{"no-latch", "the latch: if a guard hears after its own deadline that nothing is left of the lease, it counts the time to stop from that moment",
		[]overlay.Edit{noAbandon, {File: guardLease, Old: "	if a.Question != l.question || a.Left <= 0 && l.known && l.over(l.asked) <= 0 {", New: "	if a.Question != l.question {"}}, overlaps}
	releasedEarly = &flaw{"released-early", "the wait for the command's end: the lease is released when it is asked to finish",
		[]overlay.Edit{{File: guardedRun, Old: "			if r.ask(context.Cause(ctx)) && r.KillAfter > 0 {\n				defer r.kill(r.KillAfter)()\n			}\n",
			New: "			r.ask(context.Cause(ctx))\n			return\n"}}, overlaps}
	noKill = &flaw{"no-kill", "SIGKILL: the command is asked to end and nothing more", []overlay.Edit{noKiller, noTimer, noAbandon,
		{File: guardProcess, Old: "	if left <= 0 || p.killing {", New: "	if left <= 0 && !p.killing {\n		return\n	}\n	if p.killing {"}}, overlaps}
	commandAlone = &flaw{"command-alone", "the end of what the command has started: signals go to the command alone, and its end is the end", []overlay.Edit{
		noKiller, noTripwire,
		{File: guardJob, Old: "		_ = unix.Kill(-j.pid, s)\n	}", New: "		_ = unix.Kill(j.pid, s)\n	}"},
		{File: guardJob, Old: "	j.found = all\n", New: ""},
		{File: guardJob, Old: "		case pid == 0:\n			return end, false\n		case status.Stopped", New: "		case pid == 0:\n			return end, end != nil\n		case status.Stopped"}}, overlaps}
	namespaceIgnored = &flaw{"namespace-ignored", "the PID namespace: --pid-namespace changes nothing", []overlay.Edit{
		{File: runGuard, Old: "	if r.contain {\n		guard.Isolate(c)", New: "	if false {\n		guard.Isolate(c)"}}, overlaps}
	groupForgotten  = &flaw{"group-forgotten", "the tripwire: a guard that dies takes along the command and not its children", []overlay.Edit{noTripwire}, overlaps}
	straysForgotten = &flaw{"strays-forgotten", "the search for what is left when the guard has died", []overlay.Edit{noSweep}, overlaps}
	tokenReset      = &flaw{"token-reset", "the election's token: each process counts its own from 1", []overlay.Edit{
		{File: wrapToken, Old: "\"TENURE_TOKEN=\", t.Token())", New: "\"TENURE_TOKEN=\", ownToken())"},
		{File: wrapToken, Old: "func (w *Wrapper) command(", New: "var terms uint64\n\nfunc ownToken() uint64 {\n	terms++\n	return terms\n}\n\nfunc (w *Wrapper) command("}}, regresses}
)

func flaws() []*flaw {
	return []*flaw{noGuard, noKernelTimer, noLastLines, deadlineIgnored, noTimeToStop, noLatch, releasedEarly, noKill, commandAlone, namespaceIgnored, groupForgotten, straysForgotten, tokenReset, lostRunsAgain, answerKept}
}
