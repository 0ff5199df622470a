package main

import (
	"fmt"
	"strconv"
)

// markVariable is in the environment of every process of a stage, so that all of them can be found,
// with any parent, and in any group or session.
const markVariable = "TENURE_BATTERY"

// process is one process of a stage as the system shows it.
type process struct {
	pid, parent int
	state       byte
	exe         string // the file, if it can be told
	args        []string
	id, token   string // the values that tenure passed, for workers
}

// runs reports whether there is still something of it that could act: a zombie is a name on a list.
func (p process) runs() bool { return p.state != 'Z' && p.state != 'X' }

func (p process) String() string {
	s := fmt.Sprintf("process %d (%c) of %d", p.pid, p.state, p.parent)
	if p.token != "" {
		s += fmt.Sprintf(", with token %s of %s", p.token, p.id)
	}
	return s
}

// older reports whether the process was given a lower token.
func (p process) older(token uint64) bool {
	own, err := strconv.ParseUint(p.token, 10, 64)
	return err == nil && own < token
}
