package demo

import (
	"fmt"
	"strings"
	"time"
)

// deed prints an action of the demo, in capitals if it is on the leader.
func (h *human) deed(d *deed) {
	who := d.id
	if who == "" {
		who = "-"
	}
	what := string(d.do)
	switch d.do {
	case doKill, doPause, doResume, doStop:
		what = strings.ToUpper(what)
	}
	h.line(deedStyles[d.do], clock(d.time), who, what, h.terms.name(d.term), d.tell(h.lease))
}

func (d *deed) tell(lease time.Duration) string {
	switch d.do {
	case doStart:
		return fmt.Sprintf("process %d", d.pid)
	case doKill:
		return "the demo kills the leader (SIGKILL)"
	case doPause:
		return fmt.Sprintf("the demo freezes the leader for two leases, %v (SIGSTOP)", 2*lease)
	case doResume:
		return "the demo wakes it (SIGCONT)"
	case doStop:
		return "the demo asks the leader to end (SIGTERM)"
	case doDied:
		return fmt.Sprintf("process %d ended: %s", d.pid, d.text)
	case doPeer:
		return "cannot follow the leader directly: " + brief(d.text)
	case doUnseen:
		return "renewals cannot be seen, so minimum times are unknown: " + d.text
	}
	return d.text
}
