// Command peers measures elections of Tenure beside those of other libraries and locks, in one run,
// on the same servers and with the same lease.
//
//	go run .                        all peers; 9 runs of each strike
//	go run . -quick                 3 runs, a lease of 2 s, 100 elections in one process
//	go run . -only pglock,etcd      the peers with these names, or on these stores
//	go run . -markdown FILE         also write the table to a file
//	go run . -svg FILE              also write the plot
//
// Each peer is an adapter in a file with_NAME.go. It is configured as its documentation recommends.
// Each candidate is a process of its own, which reaches the server through a relay. It is killed
// (SIGKILL), frozen (SIGSTOP, SIGCONT), cut off, or asked to stop. Every 2 ms it asks its library
// whether it leads, and stamps the question with CLOCK_MONOTONIC, which is one clock for all
// processes of a machine. A yes after the first yes of a later leader is stale.
//
// The exit code is 1 if a measurement failed, or if an answer of Tenure was stale.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func main() {
	natsd.Main()
	memberMain()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type options struct {
	quick               bool
	only, markdown, svg string
	runs, elections     int
	atOnce              int
	lease, limit        time.Duration
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	var o options
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.BoolVar(&o.quick, "quick", false, "short leases and few runs")
	f.StringVar(&o.only, "only", "", "measure these peers only: names or stores, separated by commas")
	f.StringVar(&o.markdown, "markdown", "", "write the table to this file")
	f.StringVar(&o.svg, "svg", "", "write the plot to this file")
	f.IntVar(&o.runs, "runs", 9, "runs of each strike")
	f.IntVar(&o.elections, "elections", 1000, "elections in one process")
	f.IntVar(&o.atOnce, "at-once", 5, "elections that are measured at the same time, with three processes each")
	f.DurationVar(&o.lease, "lease", 5*time.Second, "the lease, in whole seconds")
	f.DurationVar(&o.limit, "timeout", 2*time.Hour, "give up after this time, and fail")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.quick {
		o.runs, o.lease, o.elections = 3, 2*time.Second, 100
	}
	if !machine.Supported {
		return fmt.Errorf("this needs Linux: on other systems the clocks of two processes differ")
	}
	chosen := choose(o.only)
	if len(chosen) == 0 {
		return fmt.Errorf("-only %s: there is no such peer", o.only)
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	results, err := measureAll(ctx, o, chosen, log)
	if err != nil {
		return err
	}
	return publish(o, results, out)
}

// choose returns the indexes of peers with these names, or on these stores.
func choose(only string) (chosen []int) {
	names := strings.Split(only, ",")
	for i, p := range peers {
		if only == "" || slices.Contains(names, p.name) || slices.Contains(names, p.store) {
			chosen = append(chosen, i)
		}
	}
	return chosen
}
