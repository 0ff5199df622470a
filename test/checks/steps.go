package main

import (
	"fmt"
	"slices"
	"strings"
)

// A step is one check: commands that a person can type at the top of the tree, each run by a bash
// of its own.
type step struct {
	name, lane string
	what       string // the proof of the step, in one sentence
	commands   []string
}

// parse reads a file of steps. Lines "lane NAME" and "step NAME Sentence." begin a lane and a step,
// indented lines are the commands of the step above, and lines with # are comments.
func parse(text string) ([]step, error) {
	var all []step
	lane := ""
	for i, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "    ") && len(all) > 0:
			last := &all[len(all)-1]
			last.commands = append(last.commands, strings.TrimSpace(line))
		case word == "lane":
			lane = strings.TrimSpace(rest)
		case word == "step" && lane != "":
			name, what, _ := strings.Cut(rest, " ")
			all = append(all, step{name: name, lane: lane, what: strings.TrimSpace(what)})
		default:
			return nil, fmt.Errorf("line %d: want a lane, a step of a lane, a command or a comment: %q", i+1, line)
		}
	}
	return all, check(all)
}

func check(all []step) error {
	for i, s := range all {
		switch {
		case s.name == "" || s.what == "":
			return fmt.Errorf("step %q: a step has a name and says what it proves", s.name)
		case len(s.commands) == 0:
			return fmt.Errorf("step %s has no command", s.name)
		case slices.ContainsFunc(all[:i], func(other step) bool { return other.name == s.name }):
			return fmt.Errorf("there are two steps %s", s.name)
		}
	}
	return nil
}

// choose returns the steps that the flags -only and -from select; empty selects all.
func choose(all []step, only, from string) ([]step, error) {
	at := func(name string) (int, error) {
		i := slices.IndexFunc(all, func(s step) bool { return s.name == name })
		if i < 0 {
			return 0, fmt.Errorf("there is no step %q; -list shows the names", name)
		}
		return i, nil
	}
	if from != "" {
		i, err := at(from)
		if err != nil {
			return nil, err
		}
		all = all[i:]
	}
	if only == "" {
		return all, nil
	}
	var chosen []step
	for name := range strings.SplitSeq(only, ",") {
		i, err := at(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
