package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
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
	row, store            string
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
	f.StringVar(&o.store, "store", "nats", "hold the elections on nats, postgres, mariadb or sqlite; sqlite has no server and no network")
	f.IntVar(&o.runs, "runs", 1, "play each row so often")
	f.IntVar(&o.side, "side", 0, "play so many side by side where nothing is measured that this would spoil (default 4, with -quick 8)")
	f.DurationVar(&o.lease, "lease", 2*time.Second, "the lease of the candidates")
	f.DurationVar(&o.length, "for", 0, "how long the random faults go on (default 10m, with -quick 20s)")
	f.DurationVar(&o.limit, "timeout", 2*time.Hour, "give up after this time: what has not happened by then has failed")
	f.StringVar(&o.keep, "keep", "", "keep the journals and logs, in a new directory in this one")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the random faults and moments")
	if err := f.Parse(args); err != nil || f.NArg() > 0 || o.runs < 1 || o.side < 0 || kinds[o.store].start == nil {
		return exitUsage
	}
	chosen, err := choose(o.row)
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
