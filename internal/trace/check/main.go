// Command check reads traces of the members of one election, as tenure run --trace writes them. It
// reports the first line whose decisions differ from those of this build, and the first line that
// breaks a rule of docs/protocol.md. docs/trace.md says more.
//
//	go run ./internal/trace/check FILE...
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/internal/trace/rules"
)

func main() {
	clocks := flag.Duration("clocks", time.Second, "by how much the wall clocks of the processes may differ")
	only := flag.Bool("rules", false, "check the rules alone: the trace is of another build")
	flag.Parse()
	if err := check(flag.Args(), *clocks, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check makes both checks, also if the first finds a fault: an edited trace fails each.
func check(names []string, clocks time.Duration, only bool) error {
	if len(names) == 0 {
		return errors.New("usage: go run ./internal/trace/check FILE...")
	}
	files := map[string][]byte{}
	var faults []error
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines, err := trace.Parse(bytes.NewReader(text))
		if err == nil && len(lines) == 0 {
			err = errors.New("there is no whole line")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !only {
			if err := trace.Replay(lines); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
		files[name] = text
		fmt.Printf("%s: %d lines\n", name, len(lines))
	}
	if err := errors.Join(append(faults, rules.Check(files, clocks))...); err != nil {
		return err
	}
	fmt.Println("no fault found")
	return nil
}
