// Command checks runs the steps of a file such as .ci/run.steps, and prints the result of each.
//
//	go run ./test/checks -steps .ci/run.steps                 all steps
//	go run ./test/checks -steps .ci/soak.steps -list          names, lanes and commands
//	go run ./test/checks -steps .ci/run.steps -only lint,race these steps
//	go run ./test/checks -steps .ci/soak.steps -from recipes  this step and the later ones
//	go run ./test/checks -steps .ci/soak.steps -into FILE     also writes the table to FILE
//
// A lane is a sequence of steps. Its steps run in the order of the file. Lanes run at the same
// time, so that steps that compute use the processor while other steps wait for servers. The lane
// "last" starts when the others have ended. A step that fails does not stop the others. At the end,
// a step that only ran out of time runs once more, alone. The exit code is 1 if a step failed or
// did not run, and 2 for a wrong flag or file.
//
// A step that passes may print a line "attention: TEXT". The table shows the text.
//
// With -into, rows of steps that did not run this time stay as they are, so that several partial
// runs make one table.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options holds the values of the flags.
type options struct {
	steps, only, from, into string
	list                    bool
	limit                   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := flags().main(ctx, os.Stdout)
	stop()
	os.Exit(code)
}

func flags() *options {
	var o options
	flag.StringVar(&o.steps, "steps", ".ci/run.steps", "the file of steps")
	flag.BoolVar(&o.list, "list", false, "print the steps and their commands, and run none")
	flag.StringVar(&o.only, "only", "", "run only these steps, separated by commas")
	flag.StringVar(&o.from, "from", "", "run this step and those after it")
	flag.StringVar(&o.into, "into", "", "write the table of results to this file, keeping its other rows")
	flag.DurationVar(&o.limit, "limit", 30*time.Minute, "kill a step that takes longer")
	flag.Parse()
	if flag.NArg() > 0 {
		fail(fmt.Errorf("unexpected argument %q", flag.Arg(0)))
	}
	return &o
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "checks:", err)
	os.Exit(2)
}

func (o *options) main(ctx context.Context, out io.Writer) int {
	text, err := os.ReadFile(o.steps)
	if err != nil {
		fail(err)
	}
	all, err := parse(string(text))
	if err != nil {
		fail(fmt.Errorf("%s: %w", o.steps, err))
	}
	chosen, err := choose(all, o.only, o.from)
	if err != nil {
		fail(err)
	}
	if o.list {
		list(out, chosen)
		return 0
	}
	logs, err := os.MkdirTemp("", "checks-")
	if err != nil {
		fail(err)
	}
	defer func() { _ = os.RemoveAll(logs) }()
	r := &runner{limit: o.limit, logs: logs, out: out, began: time.Now()}
	return o.report(out, all, r.run(ctx, chosen), time.Since(r.began))
}

func list(out io.Writer, steps []step) {
	for _, s := range steps {
		fmt.Fprintf(out, "%s (lane %s): %s\n    %s\n", s.name, s.lane, s.what, strings.Join(s.commands, "\n    "))
	}
}

// report prints the output of failed steps, and then the table, and returns the exit code.
func (o *options) report(out io.Writer, all []step, results []result, took time.Duration) int {
	code := 0
	for _, r := range results {
		if r.outcome != passed {
			code = 1
			output, _ := os.ReadFile(r.log)
			fmt.Fprintf(out, "\n=== %s: %s\n%s", r.name, r.outcome, output)
		}
	}
	fmt.Fprintln(out)
	merge(out, all, results, commit(), "")
	fmt.Fprintf(out, "\n%s in all\n", short(took))
	if o.into != "" {
		if err := mergeInto(o.into, all, results, commit()); err != nil {
			fmt.Fprintln(os.Stderr, "checks:", err)
			code = 1
		}
	}
	return code
}

// commit names the checked commit, with + if files of the tree differ from it.
func commit() string {
	name, err := exec.Command("git", "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
