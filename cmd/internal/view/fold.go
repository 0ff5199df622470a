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
	case Elected, Named:
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
	t.address, t.renewed = cmp.Or(f.Address, t.address), max(t.renewed, at)
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

// elect takes an election, or a record that names a leader. It returns false if that is known.
func (m *Model) elect(f Fact, at time.Duration) bool {
	before := m.current()
	m.vacant, m.expected = "", time.Time{}
	if before != nil && before.of(&f) && !before.taken {
		if f.What == Named {
			m.renewal = renewal{f.Term, at, m.lease(f), f.Address}
		}
		return before.confirm(f)
	}
	if before != nil && !before.of(&f) {
		m.succeed(before, f, at)
	}
	if m.renewal.term != f.Term { // else a renewal of the term came before its Elected
		m.renewal = renewal{f.Term, at, m.lease(f), f.Address}
	}
	next := term{
		who: f.Who, token: f.Term, address: cmp.Or(f.Address, m.renewal.address), from: at, renewed: max(at, m.renewal.at),
		named: f.What == Named, written: f.Written, atLeast: f.AtLeast,
	}
	if before != nil && before.of(&f) { // it goes on, after an outage of the store
		next.ordinal, next.atLeast = before.ordinal, true
	} else {
		m.seen++
		next.ordinal = m.seen
	}
	m.terms = bound(append(m.terms, next), maxTerms)
	return true
}

// succeed ends a term with the election of the next leader.
func (m *Model) succeed(before *term, next Fact, at time.Duration) {
	lasted := !before.over()
	before.end(Elected, at)
	if lasted && !next.LeaseEnded.IsZero() {
		before.fade()
	}
	m.changes = bound(append(m.changes, change{before.who, next.Who, next}), maxChanges)
	if old := m.member(before.who); old.state == leads || old.state == leaving || old.state == named {
		old.state = unheard
	}
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
		m.vacant, m.expected = f.Text, f.Expected
	}
	if t == nil || t.taken || f.What != Nobody && t.who != f.Who || f.Term != 0 && f.Term != t.token {
		return
	}
	switch f.What {
	case Crashed, Frozen, Lost, Released, Nobody:
		lasted := !t.over()
		if lasted {
			m.mark(t.who, f.What, at)
		}
		if t.end(f.What, at); lasted && !f.LeaseEnded.IsZero() {
			t.fade()
		}
	}
	if one := m.member(t.who); f.What == Nobody && (one.state == leads || one.state == leaving || one.state == named) {
		one.state = unheard
	}
}

func (m *Model) mark(who string, what What, at time.Duration) {
	m.marks = bound(append(m.marks, mark{at, who, what}), maxMarks)
}
