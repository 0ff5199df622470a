package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/internal/overlay"
	"github.com/tenure-go/tenure/test/internal/command"
)

// flaw is a planted mistake: a change to the source of tenure that makes a row fail.
type flaw struct {
	name string
	left string // the part that is left out or changed
	edit []overlay.Edit
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
	if f == nil {
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
	guardKiller  = "internal/guard/killer_linux.go"
	guardSweep   = "internal/guard/client.go"
	wrapTour     = "internal/wrap/commandrun.go"
	wrapToken    = "internal/wrap/commandrun.go"
	runFlags     = "runflags.go"
	runGuard     = "run.go"
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
	noKiller   = overlay.Edit{File: guardKiller, Old: "	if d == nil || t == nil {", New: "	if true {"}
	noParent   = overlay.Edit{File: guardLines, Old: "{ attr.Pdeathsig = unix.SIGKILL }", New: "{}"}
	noTripwire = overlay.Edit{File: guardLines, Old: "	fd := uintptr(b.trip)\n", New: "	if group > 0 {\n		return nil\n	}\n	fd := uintptr(b.trip)\n"}
	noSweep    = overlay.Edit{File: wrapTour, Old: "	r.sweep()\n", New: ""}
	// Tenure does not kill a guard that is late.
	noAbandon = overlay.Edit{File: wrapTour, Old: "			defer time.AfterFunc(r.last(), g.Abandon).Stop()\n", New: ""}
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
		{File: runFlags, Old: "StopWithin: r.stopWithin, ", New: ""},
		{File: wrapTour, Old: "r.term.Remaining, r.w.StopWithin", New: "r.term.Remaining, 500*time.Millisecond"},
		{File: wrapTour, Old: "stop := r.w.StopWithin", New: "stop := 500 * time.Millisecond"}}, overlaps}
	noLatch = &flaw{"no-latch", "the latch: if a guard hears after its own deadline that nothing is left of the lease, it counts the time to stop from that moment",
		[]overlay.Edit{noAbandon, {File: guardLease, Old: "	if a.Question != l.question || a.Left <= 0 && l.known && l.over(l.asked) <= 0 {", New: "	if a.Question != l.question {"}}, overlaps}
	releasedEarly = &flaw{"released-early", "the wait for the command's end: the lease is released when it is asked to finish",
		[]overlay.Edit{{File: wrapTour, Old: "			r.ask(g, context.Cause(ctx))\n", New: "			r.ask(g, context.Cause(ctx))\n			return\n"}}, overlaps}
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
		{File: wrapToken, Old: "func token(t *tenure.Term) string { return strconv.FormatUint(t.Token(), 10) }",
			New: "var terms uint64\n\nfunc token(*tenure.Term) string {\n	terms++\n	return strconv.FormatUint(terms, 10)\n}"}}, regresses}
)

func flaws() []*flaw {
	return []*flaw{noGuard, noKernelTimer, noLastLines, deadlineIgnored, noTimeToStop, noLatch, releasedEarly, noKill, commandAlone, namespaceIgnored, groupForgotten, straysForgotten, tokenReset}
}
