// Command bench measures elections of separate processes on real servers, and judges whether two
// led at once.
//
//	go run ./test/bench                 every row, in more than an hour
//	go run ./test/bench -quick          fewer repetitions, shorter leases, several at the same time
//	go run ./test/bench -quick -brokers the same with real Kafka brokers
//	go run ./test/bench -row crash,stop these rows; -row s3 those of object storage; -rows lists
//	                                    all rows
//	go run ./test/bench -runs 20        20 runs of each fault, cut and pause
//	go run ./test/bench -timeout 25m    fail if the rows take longer
//	go run ./test/bench -markdown       the table in Markdown, with the methods
//
// The rows are a matrix: an experiment (crash, stop, cut, ...) implements the interface experiment,
// and a site is a store on servers of its own. A site starts the servers, connects candidates to
// them, and lists its experiments with their settings and bounds. A row is an experiment at a site.
//
// The command starts itself again for the NATS servers (file storage, loopback) and for each
// candidate. Object storage is versitygw over a directory. The first run installs versitygw, which
// takes a few minutes. Kafka is three brokers, which need Java 17, and Maven for the first run; a
// quick run uses kfake. Every process stamps its acts with CLOCK_MONOTONIC, which is one clock for
// all processes of a machine. It reports on a pipe, which outlives a killed process.
//
// The exit code is 1 if two led at once, if a token fell, if a leader was elected before the last
// lease had ended, if a control found nothing, or if a row could not be measured. A missed bound on
// time never fails the command, because other work on the machine can cause it. Neither does a row
// in which leaders lost their leases because the machine was busy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func main() {
	natsd.Main()
	workerMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	quick, brokers, markdown, list bool
	row                            string
	runs                           int
	limit                          time.Duration
}

func run(ctx context.Context, args []string, out, log io.Writer) int {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	f.BoolVar(&o.quick, "quick", false, "repeat less, with shorter leases, and several side by side")
	f.BoolVar(&o.brokers, "brokers", false, "with -quick: real Kafka brokers instead of kfake")
	f.BoolVar(&o.markdown, "markdown", false, "print markdown")
	f.BoolVar(&o.list, "rows", false, "list the rows and measure nothing")
	f.StringVar(&o.row, "row", "",
		"measure these rows only, separated by commas; s3 means all rows whose names begin with s3-")
	f.IntVar(&o.runs, "runs", 0, "repeat each fault of servers, and each strike on Kafka, so often")
	f.DurationVar(&o.limit, "timeout", 2*time.Hour, "give up after this time, and fail")
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return exitUsage
	}
	chosen, err := choose(o.row)
	switch {
	case err != nil:
		fmt.Fprintln(log, "error:", err)
		return exitUsage
	case o.list:
		for _, r := range chosen {
			fmt.Fprintf(out, "%-18s %s\n", r.name(), r.title())
		}
		return exitOK
	case !machine.Supported:
		fmt.Fprintln(log, "error: this needs Linux: on other systems the clocks of two processes differ")
		return exitFailed
	}
	return measureAll(ctx, o, chosen, out, log)
}

// measureAll measures the rows and prints one table, also if rows failed.
func measureAll(ctx context.Context, o options, chosen []row, out, log io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	b, err := newBench(ctx, o, log)
	if err != nil {
		fmt.Fprintln(log, "error:", err)
		return exitFailed
	}
	defer b.close()
	t := table{quick: o.quick}
	for _, r := range chosen {
		t.results = append(t.results, b.measure(r))
		if ctx.Err() != nil {
			break
		}
	}
	t.print(out, o.markdown)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(log, "error: not finished:", ctx.Err())
		return exitFailed
	case t.worst() > figures.Missed:
		return exitFailed
	}
	return exitOK
}

// measure measures a row. An error becomes a line of the table.
func (b *bench) measure(r row) result {
	fmt.Fprintf(b.log, "%s: %s\n", r.name(), r.title())
	around := figures.Listen()
	found, err := b.try(r.site, r.experiment.measure)
	switch {
	case errors.Is(err, errBusy):
		fmt.Fprintf(b.log, "%s: %v\n", r.name(), err)
		found = append(found, measure{what: "not measured: " + err.Error(), verdict: figures.Missed})
	case err != nil:
		fmt.Fprintf(b.log, "%s: error: %v\n", r.name(), err)
		found = append(found, measure{what: "could not be measured", verdict: figures.Unmeasured})
	}
	return result{row: r, found: found, noise: around.End()}
}
