// Command battery injects process, network and server faults into `tenure run`, cron and agent,
// with real processes and a real server, and checks that two of the commands that it runs, or of
// the agents' programs, never work at once.
//
//	go run ./test/battery                  every row once, and ten minutes of random faults
//	go run ./test/battery -runs 20         every row twenty times
//	go run ./test/battery -quick           every row once, without those that only measure, at the
//	                                       same time, and a few seconds of random faults: less than
//	                                       three minutes
//	go run ./test/battery -store postgres  on PostgreSQL; -help lists the stores. Several, separated
//	                                       by commas, are played side by side; a row is then named
//	                                       STORE-ROW, and each control is played on the first store
//	go run ./test/battery -row 'crash.*'   the rows that this expression matches as a whole; -rows
//	                                       lists them
//	go run ./test/battery -timeout 20m     give up after this time; an event that has not happened
//	                                       by then counts as failed
//	go run ./test/battery -traces          each tenure run records a trace; all traces of a run must
//	                                       replay, and keep the rules (docs/trace.md)
//	go run ./test/battery -before REV      the commit of the former version in the rows upgrade.*, by
//	                                       default the last tag
//	go run ./test/battery -markdown        the tables in Markdown
//	go run ./test/battery -keep DIR        keep journals, logs, binaries in a new directory in DIR
//
// Each run has a server of its own, NATS by default, and three candidates: tenure commands, built
// from this source, each with a TCP relay of its own. A candidate that leads runs a worker. The
// worker writes each of its acts into one file, with CLOCK_MONOTONIC and its token.
// internal/witness judges that file twice: by the times, and by the order in the file, in which a
// resource would have received the acts. docs/testing.md defines the format. The program
// test/history, which shares no code with the project, judges it again. In a control, the two must
// agree.
//
// A row passes if no act with an older token follows the first act with a newer token, if tokens
// grow, if no process of an older worker is left when a new worker begins or when its tenure has
// ended, and if a next worker begins at all. The time until the next worker is shown with a
// verdict, but never fails the row. Each row that could pass by luck has controls: the same row
// with a tenure that has a flaw planted in its source. There a fault must show.
//
// The exit code is 1 if a row fails, or if a control shows no fault. Then the command prints the
// end of the journal and the logs of all processes. Only -timeout ends a run that takes too long.
//
// The rows of tenure agent, agent-*, need .ci/clients, and full runs play them. There, each
// candidate is an agent and a worker in Python, Node or Java that asks whether it may act. Their
// control is a worker that keeps the answer.
//
// The rows of tenure cron have no worker that runs on: there, runs of one job must not overlap, and
// no tick may run twice.
//
// If a thread waits for a processor for more than a tenth of the lease, a leader can lose its lease
// without a fault of tenure. Most such waits are the delay of normal threads on a busy machine. If
// such a run is safe (acts, tokens, processes of a tenure that ended in order) but breaks another
// promise, it is repeated, up to eight times. After that it counts as late, unless a process is
// left over.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/halt"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/rigs"
)

func main() {
	natsd.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type options struct {
	quick, markdown, list bool
	traces                bool
	row, store, before    string
	runs, side            int
	lease, length, limit  time.Duration
	keep                  string
	seed                  uint64
}

func run(ctx context.Context, args []string, out, log io.Writer) int {
	var o options
	f := flag.NewFlagSet("battery", flag.ContinueOnError)
	f.SetOutput(log)
	f.BoolVar(&o.quick, "quick", false, "each row once, the random row short, and no row that only measures: less than three minutes")
	f.BoolVar(&o.markdown, "markdown", false, "print markdown")
	f.BoolVar(&o.list, "rows", false, "list the rows and play nothing")
	f.StringVar(&o.row, "row", "", "play the rows that this regular expression matches as a whole")
	f.StringVar(&o.store, "store", "nats", "hold the elections on these, separated by commas: "+strings.Join(stores(), ", "))
	f.StringVar(&o.before, "before", "", "the commit of the former version (default the last tag v*; while there is none, "+standIn+")")
	f.IntVar(&o.runs, "runs", 1, "play each row so often")
	f.IntVar(&o.side, "side", 0, "play so many side by side where nothing is measured that this would spoil (default 4, with -quick 8)")
	f.DurationVar(&o.lease, "lease", 2*time.Second, "the lease of the candidates")
	f.DurationVar(&o.length, "for", 0, "how long the random faults go on (default 10m, with -quick 20s)")
	f.DurationVar(&o.limit, "timeout", 2*time.Hour, "give up after this time: what has not happened by then has failed")
	f.StringVar(&o.keep, "keep", "", "keep the journals and logs, in a new directory in this one")
	f.BoolVar(&o.traces, "traces", false, "let each tenure run record a trace, replay all traces, and check the rules on them")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the random faults and moments")
	if err := f.Parse(args); err != nil || f.NArg() > 0 || o.runs < 1 || o.side < 0 {
		return exitUsage
	}
	chosen, err := choose(strings.Split(o.store, ","), o.row)
	switch {
	case err != nil:
		fmt.Fprintln(log, "error:", err)
		return exitUsage
	case o.list:
		list(out, chosen)
		return exitOK
	case !machine.Supported:
		fmt.Fprintln(log, "error: this needs Linux: elsewhere the clocks of two processes cannot be compared")
		return exitFailed
	}
	return playAll(ctx, o, chosen, out, log)
}

// stores returns the values of the flag -store, for its help.
func stores() (names []string) {
	for _, r := range rigs.All() {
		switch {
		case r.Kind.URL == nil:
		case r.Kind.Files:
			names = append(names, r.Name+" (no server, no network)")
		default:
			names = append(names, r.Name)
		}
	}
	return names
}

func list(out io.Writer, chosen []row) {
	for _, r := range chosen {
		fmt.Fprintf(out, "%-16s %s\n", r.name, r.title)
	}
}

// playAll plays the rows and prints the tables, also after failures.
func playAll(ctx context.Context, o options, chosen []row, out, log io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	b, err := open(ctx, o, log)
	if err != nil {
		fmt.Fprintln(log, "error:", err)
		return exitFailed
	}
	defer b.close()
	r := b.play(chosen)
	r.print(out, o.markdown)
	r.explain(log) // last, so that the end of a long log has it
	if ctx.Err() != nil {
		fmt.Fprintln(log, "error: not finished:", ctx.Err())
		return exitFailed
	}
	if !r.passed() {
		fmt.Fprintf(log, "replay: go run ./test/battery -seed %d\n", o.seed)
		return exitFailed
	}
	return exitOK
}

// battery holds the parts that all runs share.
type battery struct {
	ctx context.Context
	options
	log    io.Writer
	dir    string // for all files
	bin    string // the directory of the binaries
	tenure string
	worker string
	judge  string // the binary of test/history

	// former returns the path of a tenure of the former version.
	former func() (string, error)
	// agentWorkers returns the command of the worker of each candidate of an agent.
	agentWorkers func() ([members][]string, error)

	mu     sync.Mutex // guards the fields below, and keeps the log lines of one run together
	rand   *rand.Rand
	broken map[*flaw]*broken
}

// open creates the directories of a battery and builds the programs.
func open(ctx context.Context, o options, log io.Writer) (*battery, error) {
	b := &battery{ctx: ctx, options: o, log: log, rand: rand.New(rand.NewPCG(o.seed, 0)), broken: map[*flaw]*broken{}}
	fmt.Fprintf(log, "seed %d, lease %v\n", o.seed, o.lease)
	if err := b.build(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *battery) build() (err error) {
	defer halt.Catch(&err)
	b.dir = must(os.MkdirTemp(b.keep, "tenure-battery-"))
	bin := filepath.Join(b.dir, "bin")
	check(os.MkdirAll(bin, 0o700))
	// The kernel shows the paths of running programs without symbolic links.
	b.bin = must(filepath.Abs(must(filepath.EvalSymlinks(bin))))
	b.tenure = must(command.BuildIn(b.ctx, b.bin, command.Tenure))
	b.worker = must(command.BuildIn(b.ctx, b.bin, workerPackage))
	b.judge = must(command.BuildIn(b.ctx, b.bin, historyPackage))
	b.former = sync.OnceValues(b.buildFormer)
	b.agentWorkers = sync.OnceValues(b.compileWorkers)
	return nil
}

func (b *battery) close() {
	if b.keep == "" {
		_ = os.RemoveAll(b.dir)
	}
}

// generator returns a source of random numbers for one run.
func (b *battery) generator() *rand.Rand {
	b.mu.Lock()
	defer b.mu.Unlock()
	return rand.New(rand.NewPCG(b.seed, b.rand.Uint64()))
}

// pick returns a number of repetitions, or a time: one for a quick run, or one for a full run.
func pick[T int | time.Duration](b *battery, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

// players returns how many runs are played at the same time.
func (b *battery) players() int {
	if b.side > 0 {
		return b.side
	}
	return pick(b, 8, 4)
}

// bound returns the longest time from a fault to the next worker of a row. It is longer for stores
// that are polled: up to a lease may pass between two reads.
func (b *battery) bound(r row) time.Duration {
	bound := b.lease*3/2 + time.Second/2
	if r.kind().Polled {
		bound += b.lease
	}
	if r.agent { // the agent waits for a heartbeat first
		bound += b.lease / 2
	}
	if r.cron != nil { // the next tick comes first, by the clock of the next leader
		bound += 2*time.Second + 2*b.offset(r)
	}
	return bound
}

// environment returns the environment of this process without the variables that set tenure's
// flags, and with the mark of a stage.
func environment(mark string, more ...string) []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TENURE_") })
	return append(append(own, markVariable+"="+mark), more...)
}

const workerPackage = "github.com/tenure-go/tenure/test/battery/internal/worker"
