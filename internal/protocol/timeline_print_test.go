package protocol_test

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// nextActions asks the machine for its next actions and prints all of them.
func (s *stage) nextActions() []string {
	s.todo = s.m.Next(s.now)
	var out []string
	for _, t := range s.todo.Transitions {
		out = append(out, transition(t))
		if t.What == protocol.Elected {
			s.term = t.Term
		}
	}
	if op := s.todo.Op; op != nil {
		out = append(out, "-> "+s.describe(op))
	}
	switch {
	case s.todo.Op != nil:
		s.giveUp()
		s.op = s.todo.Op
	case s.op != nil && !s.m.Current(s.op.ID):
		s.giveUp()
	}
	return append(out, s.state())
}

// giveUp keeps the operation that was given up, so that it can still get a late answer.
func (s *stage) giveUp() {
	if s.op != nil {
		s.given = s.op
	}
	s.op = nil
}

func transition(t protocol.Transition) string {
	word := map[protocol.What]string{
		protocol.Candidacy: "candidate", protocol.Elected: "elected", protocol.Leaving: "leaving", protocol.Lost: "lost",
		protocol.Released: "released", protocol.Withdrawn: "withdrawn", protocol.Overdue: "overdue",
		protocol.Trouble: "trouble", protocol.Refused: "refused", protocol.Alarm: "ALARM", protocol.Asking: "asking the leader of",
	}[t.What]
	if t.What == protocol.NewLeader {
		if t.Leader.ID == "" {
			return "leader: nobody"
		}
		return fmt.Sprintf("leader: %s, term %d", t.Leader.ID, t.Term)
	}
	if t.Term > 0 && t.What != protocol.Withdrawn {
		word += fmt.Sprintf(" term %d", t.Term)
	}
	if t.Cause != nil {
		word += ": " + t.Cause.Error()
	}
	return word
}

func (s *stage) describe(op *protocol.Op) string {
	if !op.Write {
		return "read"
	}
	r := op.Record
	name := fmt.Sprintf("n%d", len(s.own)+1)
	s.own[name], s.names[r.Nonce] = r, name
	prev := string(op.Prev)
	if prev == "" {
		prev = "nothing"
	}
	text := fmt.Sprintf("%s term %d over %s, seq=%d nonce=%s", kind(&r), r.Term, prev, r.Seq, name)
	if r.Lease != s.cfg.Lease {
		text += fmt.Sprintf(" lease=%v", r.Lease)
	}
	if r.Drift > 0 {
		text += fmt.Sprintf(" drift=%d", r.Drift)
	}
	if r.Successor != "" {
		text += " successor=" + r.Successor
	}
	switch q := r.Request; {
	case q == nil:
	case q.Offer:
		text += " offer=" + q.To
	default:
		text += " WITH A REQUEST"
	}
	return text
}

func kind(r *record.Record) string {
	switch {
	case r.Released:
		return "release"
	case r.LeaderID == "":
		return "vacant"
	case r.Seq == 1:
		return "claim"
	}
	return "renew"
}

// state prints the machine's phase, whether its work may act, and when it wants to be woken.
func (s *stage) state() string {
	phase := s.m.Phase()
	text := "= " + map[protocol.Phase]string{
		protocol.Idle: "idle", protocol.Candidate: "candidate", protocol.Leading: "leading",
		protocol.Ended: "ended", protocol.Releasing: "releasing",
	}[phase]
	if phase == protocol.Leading && s.term != s.m.Term() {
		text += ", not announced"
	} else if s.term > 0 && phase != protocol.Idle && phase != protocol.Candidate {
		text += "; " + s.remaining(s.term)
	}
	if s.todo.Timed && s.m.Active() { // an idle member has nothing to wake for
		text += fmt.Sprintf("; wake in %v", s.todo.Wake)
	}
	return text
}

func (s *stage) remaining(term uint64) string {
	left, err := s.m.Remaining(s.now, term)
	if err != nil {
		return "may not act: " + err.Error()
	}
	return fmt.Sprintf("may act for %v", left.Round(time.Microsecond))
}

// reset prints the record that an operator would put in place of a cell.
func (s *stage) reset(words []string) ([]string, error) {
	a, err := parseArgs(words)
	r, ok := s.m.Vacate(s.cell(a))
	if !ok {
		return []string{"a valid record or an absence is not replaced"}, err
	}
	return []string{s.operators(r)}, err
}

func (s *stage) endLease(words []string) ([]string, error) {
	a, err := parseArgs(words)
	r, fault := s.m.EndLease(s.cell(a), "operator")
	if fault != nil {
		return []string{"no: " + fault.Error()}, err
	}
	return []string{s.operators(r)}, err
}

// operators keeps the record that an operator writes, for later lines, and prints it.
func (s *stage) operators(r record.Record) string {
	name := fmt.Sprintf("n%d", len(s.own)+1)
	s.own[name], s.names[r.Nonce] = r, name
	return fmt.Sprintf("%s term %d, seq=%d nonce=%s lease=%v", kind(&r), r.Term, r.Seq, name, r.Lease)
}

// mayAct asks whether work may act, without another input.
func (s *stage) mayAct(words []string) ([]string, error) {
	a, err := parseArgs(words)
	term := a.number["term"]
	if term == 0 {
		term = s.term
	}
	return []string{s.remaining(term)}, err
}
