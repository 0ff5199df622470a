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
			cmd := exec.Command(binary, "-only", o.only, "-large="+strconv.FormatBool(o.large), "-states", strconv.Itoa(o.states))
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

// huntAll explores the scenarios with each bug that lets two lead in the simulation, and prints a
// table. It fails
// if a bug of the list inBounds is not found.
func huntAll(o *options) (status int) {
	for _, b := range planted.All {
		within := slices.Contains(inBounds, b.Name)
		if !within && !(ofProtocol(b) && strings.Contains(b.Shows, "two valid leases")) {
			continue
		}
		f, err := hunt(b, o.states)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		if f.Fault == "" {
			fmt.Printf("%-30s not found\n", b.Name)
			if within {
				status = 1
			}
			continue
		}
		fmt.Printf("%-30s %-12s %3d moves, %8d states: %s\n", b.Name, f.Scenario, f.Moves, f.States, f.Fault)
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
