// Command explore visits every state that a few members of one election can reach within bounds. It
// runs the code of real processes, internal/protocol, over a register and a network, and tries each
// order of events.
//
//	go run ./internal/explore                      each scenario: no rule is broken
//	go run ./internal/explore -large               also those that take minutes
//	go run ./internal/explore -only freeze         one scenario
//	go run ./internal/explore -bug unknown-counted the shortest way to a fault with a rule left out
//	go run ./internal/explore -bugs                each planted bug in turn
//	go run ./internal/explore -bug B -timelines    the inputs of each member, in the words of
//	                                               internal/protocol/testdata
//
// docs/testing.md says what that proves, within which bounds.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// options are the flags.
type options struct {
	only, bug         string
	bugs, large, json bool
	timelines         bool
	states            int
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "explore this scenario alone")
	flag.StringVar(&o.bug, "bug", "", "explore with this planted bug")
	flag.BoolVar(&o.bugs, "bugs", false, "explore with each planted bug in turn, and print a table")
	flag.BoolVar(&o.json, "json", false, "print the first fault as one line for programs")
	flag.BoolVar(&o.timelines, "timelines", false, "print the first fault as timelines of its members")
	flag.IntVar(&o.states, "states", 20_000_000, "give a scenario up after so many states")
	flag.BoolVar(&o.large, "large", false, "explore also the scenarios that take minutes")
	flag.Parse()
	switch {
	case o.bugs:
		os.Exit(huntAll(&o))
	case o.bug != "":
		os.Exit(replay(&o))
	}
	os.Exit(o.explore())
}

// explore searches each scenario, and returns 1 at the first fault.
func (o *options) explore() int {
	list := quick
	if o.large || o.only != "" {
		list = slices.Concat(quick, large)
	}
	for _, s := range list {
		if o.only != "" && o.only != s.name {
			continue
		}
		mo, begin := s.model(), time.Now()
		r := mo.search(o.states)
		if o.json {
			if r.fault != "" {
				_ = json.NewEncoder(os.Stdout).Encode(found{s.name, r.fault, len(r.trace), r.states})
				return 1
			}
			continue
		}
		whole := "all"
		if !r.whole {
			whole = "some"
		}
		fmt.Printf("%-13s %s %d states, %d moves, depth %d, in %v\n", s.name, whole, r.states, r.moves, r.depth, time.Since(begin).Round(time.Millisecond))
		if r.fault != "" {
			mo.print(r)
			if o.timelines {
				mo.timelines(os.Stdout, s.name, r.trace)
			}
			return 1
		}
	}
	if !o.json {
		fmt.Println("no fault found")
	}
	return 0
}

func (mo *model) print(r result) {
	w := mo.first()
	for _, v := range r.trace {
		fmt.Printf("%6v  %s\n", w.now, w.name(v))
		w = w.after(v)
	}
	fmt.Printf("%6v  %s\n", w.now, r.fault)
}
