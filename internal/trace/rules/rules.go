// Package rules checks traces of the members of one election against the rules of
// docs/protocol.md. It uses no code of the protocol: it reads the lines, and knows the rules by
// their text.
//
// In each trace, a leader acts and renews only within the deadline of its last confirmed write
// (L1), and never again in a term that is over (L4). A claim over a record that may hold a lease
// comes a whole lease after that record was first shown (L2), and has a higher term than every
// record that was shown (L10). A release comes after the work has stopped (L9).
//
// Over all traces, a version is replaced once, a term belongs to one member, and leases do not
// overlap by more than the margin.
package rules

import (
	"fmt"
	"slices"
	"time"
)

// Fault is where a trace and a rule part.
type Fault struct {
	File string
	Line int
	Rule string
	Text string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Text)
}

// Check checks the traces of the members of elections, by the names of their files. It returns a
// *Fault for the first line of a file that breaks a rule. The wall clocks of the members may differ
// by clocks.
func Check(files map[string][]byte, clocks time.Duration) error {
	elections := map[string]*election{}
	for _, name := range sortedNames(files) {
		lines, err := parse(files[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		members := map[string]*member{}
		for i := range lines {
			l := &lines[i]
			m := members[l.By]
			if l.In == "start" || m == nil {
				e := elections[l.Election]
				if e == nil {
					e = &election{clocks: clocks, replaced: map[string]write{}}
					elections[l.Election] = e
				}
				m = newMember(e, name)
				members[l.By] = m
			}
			if m.take(l); m.fault != nil {
				return m.fault
			}
		}
		for _, m := range members {
			m.close(m.last)
		}
	}
	for _, e := range elections {
		if err := e.judge(); err != nil {
			return err
		}
	}
	return nil
}

func sortedNames(files map[string][]byte) (names []string) {
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// write is a write that a member has sent.
type write struct {
	at     [3]time.Duration
	wall   time.Time
	budget time.Duration
	op     uint64
	prev   string
	recurs bool // it replaces an absence or a draft, whose version may recur
	record record
}

// member is the state of one member, by the lines so far.
type member struct {
	election *election
	file     string
	last     *line
	fault    error

	settings settings
	pending  []write // their outcomes are unknown
	leads    bool
	term     uint64
	held     write           // the last write of the term that is confirmed
	over     map[uint64]bool // terms that have ended
	working  uint64          // the term of the work that runs
	seenTerm uint64
	shown    map[string]*cell            // by version
	first    map[string][3]time.Duration // when a holder's write was first shown, by its stamp
	rumors   map[string][3]time.Duration // when an unverified push first showed a nonce
	reign    *reign
	asked    op // the last operation
	askedAt  [3]time.Duration
}

func newMember(e *election, file string) *member {
	return &member{
		election: e, file: file, over: map[uint64]bool{}, shown: map[string]*cell{},
		first: map[string][3]time.Duration{}, rumors: map[string][3]time.Duration{},
	}
}

func (m *member) failf(rule, format string, args ...any) {
	if m.fault == nil {
		m.fault = &Fault{m.file, m.last.number, rule, fmt.Sprintf(format, args...)}
	}
}

// take takes one line.
func (m *member) take(l *line) {
	m.last = l
	switch l.In {
	case "start", "reconfigured":
		if l.Settings != nil {
			m.settings = *l.Settings
		}
	case "read", "pushed":
		if l.Cell != nil && (l.In == "pushed" || l.Outcome == "applied") {
			m.see(l, l.Cell)
		}
	case "written":
		m.written(l)
	case "question":
		m.question(l)
	case "finish", "abandon":
		if l.In == "finish" {
			m.working = 0
		}
		m.close(l)
	case "next":
		m.next(l)
	}
}

// see notes a state that was shown.
func (m *member) see(l *line, c *cell) {
	r := &c.Record
	if c.Unverified {
		if _, known := m.rumors[r.Nonce]; !known {
			m.rumors[r.Nonce] = l.At
		}
		return
	}
	m.shown[c.Version] = c
	if c.Kind == "valid" && m.counts(l, r) {
		m.seenTerm = max(m.seenTerm, r.Term)
	}
	if _, known := m.first[stamp(c)]; !known {
		m.first[stamp(c)] = l.At
		if at, ok := m.rumors[r.Nonce]; ok {
			m.first[stamp(c)] = at
		}
	}
	for i := range m.pending {
		if c.Kind == "valid" && m.pending[i].record.Nonce == r.Nonce {
			m.confirm(m.pending[i])
			return
		}
	}
}

// counts reports whether the member must take notice of a record: the answer to a read that it has
// given up does not count (L3a), nor does a term that a peer alone states (L13).
func (m *member) counts(l *line, r *record) bool {
	if l.In == "pushed" {
		return !m.settings.Hearsay || r.Term <= m.seenTerm
	}
	return l.Op == m.asked.ID && leaderSince(l.At, m.askedAt) < m.asked.Timeout
}

func stamp(c *cell) string {
	if c.Kind != "valid" {
		return c.Kind + " " + c.Version + " " + c.Record.Nonce
	}
	return fmt.Sprintf("%s %d %s", c.Record.Incarnation, c.Record.Term, c.Record.Nonce)
}

// confirm notes that a write is or was in the cell.
func (m *member) confirm(w write) {
	m.pending = nil
	m.election.applied(m, w)
	if w.record.held() && (!m.leads || w.record.Term == m.term) {
		m.held = w
		if m.reign != nil && m.leads {
			m.reign.extend(w)
		}
	}
}

func (m *member) written(l *line) {
	for i := range m.pending {
		if w := m.pending[i]; w.op == l.Op && l.Outcome == "applied" {
			c := &cell{Kind: "valid", Version: l.Version, Record: w.record}
			m.shown[l.Version] = c
			if _, known := m.first[stamp(c)]; !known {
				m.first[stamp(c)] = l.At
			}
			m.confirm(w)
			return
		}
	}
}

// left returns the time to the deadline: the earliest of the last confirmed write and of all that
// are pending (L1).
func (m *member) left(now [3]time.Duration) time.Duration {
	left := m.held.budget - leaderSince(now, m.held.at)
	for i := range m.pending {
		left = min(left, m.pending[i].budget-leaderSince(now, m.pending[i].at))
	}
	return left
}

func (m *member) question(l *line) {
	switch {
	case l.Left <= 0:
	case m.over[l.Term]:
		m.failf("L4", "term %d is over, and may act for %v", l.Term, l.Left)
	case !m.leads || l.Term != m.term:
		m.failf("L6", "term %d has not begun, and may act for %v", l.Term, l.Left)
	case l.Left > m.left(l.At):
		m.failf("L1", "term %d may act for %v, and its deadline is in %v", l.Term, l.Left, m.left(l.At))
	}
}

// next takes decisions: the changes, and then the operation.
func (m *member) next(l *line) {
	for _, c := range l.Changes {
		switch c.What {
		case "elected":
			m.elect(l, c.Term)
		case "lost", "released", "withdrawn":
			m.close(l)
		}
	}
	if m.leads && m.left(l.At) <= 0 {
		m.failf("L1", "it leads term %d, and the deadline was %v ago", m.term, -m.left(l.At))
	}
	if l.Send == nil {
		return
	}
	m.asked, m.askedAt = *l.Send, l.At
	if l.Send.Record != nil {
		m.send(l, l.Send)
	}
}

func (m *member) elect(l *line, term uint64) {
	switch {
	case m.over[term]:
		m.failf("L4", "term %d is over, and is elected", term)
	case m.held.record.Term != term:
		m.failf("L7", "term %d is elected, and no claim of it was confirmed", term)
	case m.working != 0:
		m.failf("L9", "term %d is elected while the work of term %d runs", term, m.working)
	}
	m.leads, m.term, m.working = true, term, term
	m.reign = m.election.begin(m, l, term)
	m.reign.extend(m.held)
}

// close ends the term, if one is open.
func (m *member) close(l *line) {
	if m.leads {
		m.leads, m.over[m.term] = false, true
		m.reign.ended = l.Wall
	}
}

// send checks a write when it is sent.
func (m *member) send(l *line, o *op) {
	r, was := o.Record, m.shown[o.Prev]
	switch {
	case r.Released:
		if m.working == r.Term {
			m.failf("L9", "term %d is released while its work runs", r.Term)
		}
	case r.held() && r.Seq == 1:
		m.claim(l, o, was)
	case r.held() && m.over[r.Term]:
		m.failf("L4", "term %d is over, and is renewed", r.Term)
	case r.held() && m.left(l.At) <= 0:
		m.failf("L1", "term %d is renewed %v after its deadline", r.Term, -m.left(l.At))
	case r.held() && was != nil && (was.Record.Incarnation != r.Incarnation || was.Record.Term != r.Term || !was.Record.held()):
		m.failf("L7", "term %d is renewed over term %d of %q", r.Term, was.Record.Term, was.Record.Incarnation)
	}
	m.pending = append(m.pending, write{
		at: l.At, wall: l.Wall, budget: m.settings.Budget, op: o.ID, prev: o.Prev, record: *r,
		recurs: was == nil || was.Kind == "absent" || was.Record.LeaderID == "",
	})
}

func (m *member) claim(l *line, o *op, was *cell) {
	r := o.Record
	switch {
	case r.Term <= m.seenTerm:
		m.failf("L10", "term %d is claimed after term %d was shown", r.Term, m.seenTerm)
	case was == nil:
		m.failf("L7", "term %d is claimed over version %q, which was not shown", r.Term, o.Prev)
	case was.Kind == "absent", was.Record.Released, was.Record.held() && was.Record.Incarnation == r.Incarnation:
	case was.Kind == "foreign":
		m.failf("L15", "term %d is claimed over foreign bytes", r.Term)
	default:
		lease := max(was.Record.Lease, m.settings.Lease)
		if waited := followerSince(l.At, m.first[stamp(was)]); waited < lease {
			m.failf("L2", "term %d is claimed %v after the record with a lease of %v was first shown", r.Term, waited, lease)
		}
	}
}
