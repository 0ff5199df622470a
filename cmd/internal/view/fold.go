package view

import (
	"cmp"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

// Take adds one fact.
func (m *Model) Take(f Fact) {
	f.What, f.Who, f.Text, f.Address = What(output.Plain(string(f.What))), output.Plain(f.Who), output.Plain(f.Text), output.Plain(f.Address)
	if m.began.IsZero() {
		m.began = f.At
	}
	at := m.since(f.At)
	switch f.What {
	case Renewed:
		m.renew(f, at)
		return
	case Checked:
		m.checked = f.Text
		return
	case Elected:
		if !m.elect(f, at) {
			return
		}
	default:
		m.strike(f, at)
	}
	m.stand(f)
	if !shownAtMembers[f.What] {
		m.news = bound(append(m.news, f), maxNews)
	}
}

// shownAtMembers are the facts that the lanes of the members show, and not the news.
var shownAtMembers = map[What]bool{Started: true, Follows: true, Ended: true}

// stand sets the state of a member by its latest fact. Follows changes nothing for the present
// leader, which may report it late.
func (m *Model) stand(f Fact) {
	next, ok := states[f.What]
	if !ok || f.Who == "" {
		return
	}
	who := m.member(f.Who)
	if f.What == Follows && who.state == leads && m.leading(f.Who) {
		return
	}
	who.state = next
}

func (m *Model) leading(who string) bool {
	t := m.current()
	return t != nil && t.who == who && !t.over()
}

// renew takes a renewal. It shows that a leader that was frozen, and resumed in time, still leads.
// A renewal just after the freeze does not count: it was sent before.
func (m *Model) renew(f Fact, at time.Duration) {
	m.renewal = renewal{f.Term, at, m.lease(f), f.Address}
	t := m.current()
	if t == nil || t.token != f.Term {
		return
	}
	t.address = cmp.Or(f.Address, t.address)
	if who := m.member(t.who); t.ended == Frozen && !t.taken && who.state == follows {
		who.state, t.ended = leads, ""
	}
}

func (m *Model) lease(f Fact) time.Duration {
	if f.Lease > 0 {
		return f.Lease
	}
	return m.screen.Lease
}

// elect takes an election. It returns false if the leader and the term are known already.
func (m *Model) elect(f Fact, at time.Duration) bool {
	before := m.current()
	m.vacant = ""
	if before != nil && before.who == f.Who && before.token == f.Term {
		before.address = f.Address
		return false
	}
	if before != nil {
		before.end(Elected, at)
		m.changes = bound(append(m.changes, change{before.who, f.Who, f}), maxChanges)
		if old := m.member(before.who); old.state == leads || old.state == leaving {
			old.state = unheard
		}
	}
	if m.renewal.term != f.Term { // else a renewal of the term came before its Elected
		m.renewal = renewal{f.Term, at, m.lease(f), f.Address}
	}
	address := cmp.Or(f.Address, m.renewal.address)
	m.seen++
	m.terms = bound(append(m.terms, term{who: f.Who, token: f.Term, ordinal: m.seen, address: address, from: at}), maxTerms)
	return true
}

// strike takes the facts that end terms and leave marks on the timeline.
func (m *Model) strike(f Fact, at time.Duration) {
	if f.What == Overlap {
		m.overlaps++
		m.mark(f.Who, f.What, at)
		return
	}
	t := m.current()
	if f.What == Nobody {
		m.vacant = f.Text
	}
	if t == nil || t.taken || f.What != Nobody && t.who != f.Who || f.Term != 0 && f.Term != t.token {
		return
	}
	switch f.What {
	case Crashed, Frozen, Lost, Released, Nobody:
		if !t.over() {
			m.mark(t.who, f.What, at)
		}
		t.end(f.What, at)
	}
	if one := m.member(t.who); f.What == Nobody && (one.state == leads || one.state == leaving) {
		one.state = unheard
	}
}

func (m *Model) mark(who string, what What, at time.Duration) {
	m.marks = bound(append(m.marks, mark{at, who, what}), maxMarks)
}
