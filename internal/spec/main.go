// Command spec checks tenure.pml, the specification of the protocol, with Spin. Every rule holds in
// each state within the bounds. Each mutant, which leaves out a rule, breaks one. It needs spin and
// gcc.
//
//	go run ./internal/spec                  the small bounds, and all mutants
//	go run ./internal/spec -large           the large bounds
//	go run ./internal/spec -only NO_MARGIN  one of them; with -v, the steps that break the rule
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed tenure.pml
var source []byte

// search is one run of Spin.
type search struct {
	name   string
	bounds string // the values of macros in tenure.pml
	mutant string // the rule that is left out; empty: none
	breaks string // the rule of tenure.pml that a mutant breaks
	live   bool   // also under weak fairness: in the end one member leads for good
	large  bool
	took   time.Duration // processor time
}

const (
	calm   = "TERMS=2 CRASHES=0 DELETES=0 ORDERS=0 LATE=0"
	crash  = "TERMS=2 CRASHES=1 DELETES=0 ORDERS=0 LATE=0"
	purge  = "TERMS=2 CRASHES=0 DELETES=1 ORDERS=0 LATE=0"
	order  = "TERMS=2 CRASHES=0 DELETES=0 ORDERS=1 LATE=0"
	late   = "TERMS=2 CRASHES=0 DELETES=0 ORDERS=0 LATE=1"
	narrow = "TERMS=1 CRASHES=0 DELETES=0 ORDERS=0 LATE=0"
)

// searches are the bounds within which every rule holds, and the mutants.
var searches = []search{
	{name: "late", bounds: late},
	{name: "crash", bounds: crash},
	{name: "delete", bounds: purge, large: true},
	{name: "order", bounds: order, large: true},
	{name: "progress", bounds: narrow, live: true},

	{name: "late-order", bounds: "TERMS=2 CRASHES=0 DELETES=0 ORDERS=1 LATE=1", large: true},
	{name: "late-crash", bounds: "TERMS=2 CRASHES=1 DELETES=0 ORDERS=0 LATE=1", large: true},
	{name: "late-delete", bounds: "TERMS=2 CRASHES=0 DELETES=1 ORDERS=0 LATE=1", large: true},
	{name: "terms", bounds: "TERMS=4 CRASHES=0 DELETES=0 ORDERS=0 LATE=1", large: true},
	{name: "crashes", bounds: "TERMS=3 CRASHES=2 DELETES=0 ORDERS=1 LATE=0", large: true},
	{name: "three", bounds: "MEMBERS=3 TERMS=1 CRASHES=0 DELETES=0 ORDERS=0 LATE=0", large: true},
	{name: "progress-crash", bounds: "TERMS=1 CRASHES=1 DELETES=0 ORDERS=1 LATE=0", live: true, large: true},

	{name: "NO_MARGIN", bounds: calm, mutant: "L3", breaks: "P1"},
	{name: "WAIT_SHORT", bounds: calm, mutant: "L2", breaks: "P1"},
	{name: "FROM_SEND", bounds: calm, mutant: "L2", breaks: "P1"},
	{name: "FROM_ANSWER", bounds: calm, mutant: "L1", breaks: "P1"},
	{name: "NO_DEADLINE", bounds: calm, mutant: "L1", breaks: "P1"},
	{name: "UNKNOWN_COUNTED", bounds: calm, mutant: "L7", breaks: "P1"},
	{name: "CONFLICT_COUNTED", bounds: late, mutant: "L7", breaks: "P1"},
	{name: "NO_CAS", bounds: calm, mutant: "compare-and-swap", breaks: "P2"},
	{name: "TERM_KEPT", bounds: calm, mutant: "L10", breaks: "P2"},
	{name: "RELEASE_EARLY", bounds: calm, mutant: "L9", breaks: "P3"},
	{name: "NO_LATCH", bounds: calm, mutant: "L4", breaks: "P4"},
	{name: "TIMER_BY_READ", bounds: crash, mutant: "L2", breaks: "P5"},
	{name: "ADOPTS", bounds: crash, mutant: "L12", breaks: "P1"},
	{name: "ABSENCE_CLAIMED", bounds: purge, mutant: "L11", breaks: "P1"},
}

func main() {
	only := flag.String("only", "", "run this search alone")
	large := flag.Bool("large", false, "run the searches with large bounds, in place of the others")
	steps := flag.Bool("v", false, "print the steps that break a rule")
	flag.Parse()
	list := slices.DeleteFunc(slices.Clone(searches), func(s search) bool {
		if *only != "" {
			return s.name != *only
		}
		return s.large != *large
	})
	if len(list) == 0 {
		fmt.Fprintf(os.Stderr, "there is no search %q\n", *only)
		os.Exit(2)
	}
	failed := false
	for _, err := range each(list, *steps) {
		failed = failed || err != nil
	}
	if failed {
		os.Exit(1)
	}
}

// each runs the searches on all processors, and prints a line for each. Large ones need gigabytes,
// and run one at a time.
func each(list []search, steps bool) []error {
	places := make(chan bool, runtime.GOMAXPROCS(0))
	if list[0].large {
		places = make(chan bool, 1)
	}
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i := range list {
		places <- true
		wg.Go(func() {
			defer func() { <-places }()
			s := &list[i]
			text, err := s.run(steps)
			fmt.Printf("%-16s %s, in %v of processor time\n", s.name, text, s.took.Round(100*time.Millisecond))
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errs
}

// run makes Spin's checker in a directory of its own, and runs it.
func (s *search) run(steps bool) (text string, err error) {
	dir, err := os.MkdirTemp("", "tenure-spec-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "tenure.pml"), source, 0o600); err != nil {
		return "", err
	}
	optimize, kind := "-O1", "-DSAFETY"
	macros := strings.Fields(s.bounds)
	if s.mutant != "" { // it ends so soon that compiling takes most of the time
		optimize, macros = "-O0", append(macros, s.name)
	}
	options := []string{"-m100000", "-w20"} // the deepest path, and the size of the table of states
	if s.large {
		options = []string{"-m1000000", "-w26"}
	}
	if s.live {
		kind, macros = "-DNFAIR=3", append(macros, "LIVENESS")
		options = append(options, "-a", "-f")
	}
	for i := range macros {
		macros[i] = "-D" + macros[i]
	}
	if _, err := s.in(dir, "spin", append(macros, "-a", "tenure.pml")...); err != nil {
		return "", err
	}
	if _, err := s.in(dir, "gcc", optimize, "-w", kind, "-DVECTORSZ=1024", "-DMEMLIM=6000", "-o", "pan", "pan.c"); err != nil {
		return "", err
	}
	out, err := s.in(dir, "./pan", options...)
	if err != nil {
		return "", err
	}
	if steps && strings.Contains(out, "wrote tenure.pml.trail") {
		trail, _ := s.in(dir, "spin", append(macros, "-t", "-p", "-g", "tenure.pml")...)
		fmt.Print(trail)
	}
	return s.judge(out)
}

// in runs a command in a directory, and returns its output.
func (s *search) in(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if c.ProcessState != nil {
		s.took += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

var (
	violated = regexp.MustCompile(`pan:\d+: (.*) \(at depth \d+\)`)
	stored   = regexp.MustCompile(`(\d+) states, stored`)
	depth    = regexp.MustCompile(`depth reached (\d+)`)
	whole    = regexp.MustCompile(`errors: 0\n`)
)

var errWrong = errors.New("the search did not end as it should")

// judge reads the output of Spin's checker.
func (s *search) judge(out string) (text string, err error) {
	states, deep := stored.FindStringSubmatch(out), depth.FindStringSubmatch(out)
	if states == nil || deep == nil {
		return "", fmt.Errorf("%w: %s", errWrong, out)
	}
	fault := ""
	if v := violated.FindStringSubmatch(out); v != nil {
		fault = v[1]
	}
	text = fmt.Sprintf("%s states, depth %s", states[1], deep[1])
	switch {
	case s.mutant != "":
		text += ": without " + s.mutant + ", " + fault
		if fault != "assertion violated "+s.breaks {
			err = fmt.Errorf("%w: it should break %s, and found %q", errWrong, s.breaks, fault)
		}
	case fault != "":
		err = fmt.Errorf("%w: %s", errWrong, fault)
	case !whole.MatchString(out) || strings.Contains(out, "Search not completed") || strings.Contains(out, "max search depth too small"):
		err = fmt.Errorf("%w: not all states were reached: %s", errWrong, out)
	default:
		text = "all " + text
	}
	return text, err
}
