package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/planted"
)

// inBounds are the bugs that the quick scenarios must find.
var inBounds = []string{
	"deadline-from-answer", "no-deadline", "newest-attempt-counted", "release-ends-nothing", "wait-clamped",
	"own-lease-only", "no-drift-margin", "nonce-per-term", "vacant-at-once", "request-renews",
	"malformed-at-once", "inherited-trusted",
}

// found is the first fault of an exploration, as one process sends it to another.
type found struct {
	Scenario, Fault string
	Moves, States   int
}

// replay explores with a bug planted, in place of this process.
func replay(o *options) (status int) {
	b, err := planted.Find(o.bug)
	if err == nil {
		fmt.Printf("%s (%s): %s\n", b.Name, b.Rule, b.Left)
		err = b.Build("./internal/explore", func(binary string) error {
			cmd := exec.Command(binary, "-only", o.only, "-large="+strconv.FormatBool(o.large), "-timelines="+strconv.FormatBool(o.timelines), "-states", strconv.Itoa(o.states))
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if cmd.Run() != nil {
				status = 1
			}
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return status
}

// huntAll explores the scenarios with each bug that lets two lead in the simulation, one on each
// core, and prints a table. It fails if a bug of the list inBounds is not found.
func huntAll(o *options) (status int) {
	bugs := slices.DeleteFunc(slices.Clone(planted.All), func(b planted.Bug) bool {
		return !slices.Contains(inBounds, b.Name) && !(ofProtocol(b) && strings.Contains(b.Shows, "two valid leases"))
	})
	all, errs := make([]found, len(bugs)), make([]error, len(bugs))
	planted.OnEachCore(len(bugs), func(i int) { all[i], errs[i] = hunt(bugs[i], o.states) })
	for i, f := range all {
		name := bugs[i].Name
		switch {
		case errs[i] != nil:
			fmt.Fprintln(os.Stderr, errs[i])
			return 2
		case f.Fault != "":
			fmt.Printf("%-30s %-12s %3d moves, %8d states: %s\n", name, f.Scenario, f.Moves, f.States, f.Fault)
			continue
		case slices.Contains(inBounds, name):
			status = 1
		}
		fmt.Printf("%-30s not found\n", name)
	}
	return status
}

// hunt explores the scenarios with a bug, up to the first fault.
func hunt(b planted.Bug, states int) (f found, err error) {
	err = b.Build("./internal/explore", func(binary string) error {
		out, _ := exec.Command(binary, "-json", "-states", strconv.Itoa(states)).Output()
		if len(out) > 0 {
			return json.Unmarshal(out, &f)
		}
		return nil
	})
	return f, err
}

// ofProtocol reports whether the bug changes only what the exploration runs.
func ofProtocol(b planted.Bug) bool {
	for _, e := range b.Edit {
		if !strings.HasPrefix(e.File, "protocol/") && !strings.HasPrefix(e.File, "record/") {
			return false
		}
	}
	return true
}
