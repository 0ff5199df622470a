package main

import (
	"fmt"
	"strconv"
)

// markVariable is in the environment of every process of a stage. So the battery finds all of them,
// whatever their parent, group or session is.
const markVariable = "TENURE_BATTERY"

// process holds what the system shows of one process of a stage.
type process struct {
	pid, parent int
	state       byte
	exe         string // the path of the program, if known
	args        []string
	id, token   string // the values that tenure passed to a worker
}

// runs reports whether the process can still act. A zombie cannot.
func (p process) runs() bool { return p.state != 'Z' && p.state != 'X' }

func (p process) String() string {
	s := fmt.Sprintf("process %d (%c) of %d", p.pid, p.state, p.parent)
	if p.token != "" {
		s += fmt.Sprintf(", with token %s of %s", p.token, p.id)
	}
	return s
}

// older reports whether the process received a lower token.
func (p process) older(token uint64) bool {
	own, err := strconv.ParseUint(p.token, 10, 64)
	return err == nil && own < token
}
