// Command history judges the history of one election from outside: the journal in which the work
// of leaders noted its acts, and traces of the members that claimed and released. It shares no code
// with the rest of the project, and imports the standard library alone: a mistake there cannot hide
// itself here. docs/testing.md defines the journal, and docs/trace.md the traces.
//
//	go run ./test/history JOURNAL [TRACE...]
//
// It prints the first fault of each rule, and ends with exit code 1 if there is one:
//
//	token    a term begins with a token that is not above those of all terms that began before
//	overlap  an act comes at or after the first act with a higher token, by the clock of the acts
//	order    the same by the order of the journal, in which a resource would have received them
//	holder   two processes act with one token, or a candidate that has not claimed it
//	end      a process acts after it has noted its own end
//	claims   two claims of one token were confirmed, or a lower one was claimed after a higher one
//	claim    an act comes before the claim of its token was sent
//	release  an act comes after the release of its token was sent
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, out, log io.Writer) int {
	f := flag.NewFlagSet("history", flag.ContinueOnError)
	f.SetOutput(log)
	asks := f.Bool("asks", false, "the work notes the time and then asks whether it may act: the order of the journal counts for nothing")
	jobs := f.Bool("jobs", false, "one token may have several processes of one candidate, one for each run of a job")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if f.NArg() == 0 {
		fmt.Fprintln(log, "usage: history [-asks] [-jobs] JOURNAL [TRACE...]")
		return 2
	}
	h := history{asks: *asks, jobs: *jobs}
	if err := h.read(f.Args()); err != nil {
		fmt.Fprintln(log, err)
		return 2
	}
	faults := h.judge()
	for _, fault := range faults {
		fmt.Fprintln(out, fault)
	}
	if len(faults) > 0 {
		return 1
	}
	fmt.Fprintf(out, "%d acts with %d tokens, %d claims and %d releases keep the rules\n", len(h.acts), len(h.tokens()), len(h.claims), len(h.releases))
	return 0
}

func (h *history) read(names []string) error {
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && i == 0 {
			err = h.readJournal(text)
		} else if err == nil {
			err = h.readTrace(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
