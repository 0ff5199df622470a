package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

// Bounds of the history, each more than the largest terminal shows.
const (
	maxTerms   = 1000
	maxMarks   = 1000
	maxChanges = 200
	maxNews    = 200
)

// Model is the state that follows from all facts so far. Only one goroutine may use it at a time.
type Model struct {
	screen  Screen
	ink     palette
	began   time.Time // the times below count from here
	members []*member
	terms   []term
	seen    int // how many terms there were
	marks   []mark
	changes []change
	news    []Fact

	renewal  renewal
	vacant   string    // the reason why there is no leader, if it is known
	expected time.Time // until when that is normal
	overlaps int
	checked  string
}

// New returns a model without facts.
func New(s Screen) *Model {
	m := &Model{screen: s, ink: palette(s.Colour), began: s.Began}
	m.screen.Title, m.screen.Place, m.screen.Election = output.Plain(s.Title), output.Plain(s.Place), output.Plain(s.Election)
	for _, id := range s.Members {
		m.member(output.Plain(id))
	}
	return m
}

// mark is a sign on the timeline.
type mark struct {
	at   time.Duration
	who  string
	what What
}

// change is a change of leader.
type change struct {
	from, to string
	fact     Fact
}

// renewal is the last renewal that was seen.
type renewal struct {
	term    uint64
	at      time.Duration
	lease   time.Duration
	address string
}

// since returns the time from the beginning to a moment.
func (m *Model) since(at time.Time) time.Duration { return at.Sub(m.began) }

// bound returns the newest n if there are more than 2n, and all otherwise.
func bound[T any](all []T, n int) []T {
	if len(all) <= 2*n {
		return all
	}
	return slices.Clone(last(all, n))
}

// last returns the newest n.
func last[T any](all []T, n int) []T {
	return all[max(0, len(all)-n):]
}

// member is a candidate.
type member struct {
	id    string
	index int // in the order of appearance; it decides the color
	state state
}

// state is the state of a member, as the word that is shown.
type state string

const (
	unheard  state = ""
	starts   state = "starts"
	follows  state = "follows"
	leads    state = "leads"
	leaving  state = "leaving"
	frozen   state = "frozen"
	down     state = "down"
	finished state = "ended"
	silent   state = "silent"
	named    state = "named"
)

var stateGlyphs = map[state]string{
	unheard: "·", starts: "◌", follows: "○", leads: "●", leaving: "◐", frozen: "‖", down: "✗", finished: "·", silent: "?", named: "?",
}

// states maps a member's facts to its state. After a member has led, its state is unknown until its
// next fact.
var states = map[What]state{
	Started: starts, Follows: follows, Elected: leads, Named: named, Leaving: leaving, Released: unheard, Lost: unheard,
	Crashed: down, Frozen: frozen, Woken: follows, Ended: finished,
}

// member returns the member with an ID, and adds it if it is new.
func (m *Model) member(id string) *member {
	for _, one := range m.members {
		if one.id == id {
			return one
		}
	}
	one := &member{id: id, index: len(m.members)}
	m.members = append(m.members, one)
	return one
}

// term is the term of one leader.
type term struct {
	who     string
	token   uint64
	ordinal int // among those that were seen, from 1
	address string
	from    time.Duration
	ended   What          // the fact that ended it; empty while it lasts
	until   time.Duration // its end, if it has ended
	renewed time.Duration // its last renewal that was seen; from, before the first
	// named: the record names the leader, and no renewal was seen. written is when the record was
	// written, by its writer's clock.
	named   bool
	written time.Time
	// silent: the term ended with its lease. It is not known whether the leader acted after its
	// last renewal, which is until.
	silent  bool
	atLeast bool // it began before from
	// gone is when the lease that it left behind ran out or was taken over, if that was seen.
	gone  time.Duration
	taken bool
}

func (t *term) over() bool { return t.ended != "" }

// name returns the ordinal, which is shorter than the token.
func (t *term) name() string { return "#" + strconv.Itoa(t.ordinal) }

// of reports whether a fact is about this term.
func (t *term) of(f *Fact) bool { return t.who == f.Who && t.token == f.Term }

// confirm takes another Elected or Named of the term. It returns false if it is no news.
func (t *term) confirm(f Fact) bool {
	was := t.named
	t.address, t.named, t.written, t.atLeast = f.Address, f.What == Named, f.Written, t.atLeast || f.AtLeast
	return was != t.named
}

// full returns the name and the token.
func (t *term) full() string { return fmt.Sprintf("term %s (%d)", t.name(), t.token) }

// end keeps the first cause of a term's end; later ones follow from it.
func (t *term) end(why What, at time.Duration) {
	if !t.over() {
		t.ended, t.until = why, max(at, t.from)
	}
	if why == Released || why == Nobody || why == Elected {
		t.free(at)
	}
}

// fade ends a term whose leader was last seen at its last renewal.
func (t *term) fade() {
	if !t.named {
		t.until, t.silent = max(t.renewed, t.from), true
	}
}

// free notes that no candidate has to wait for the lease of the term any longer.
func (t *term) free(at time.Duration) {
	if !t.taken {
		t.gone, t.taken = max(at, t.from), true
	}
}

// current returns the latest term, nil before the first.
func (m *Model) current() *term {
	if len(m.terms) == 0 {
		return nil
	}
	return &m.terms[len(m.terms)-1]
}

// numbered returns the term with a token, or nil if it is not kept.
func (m *Model) numbered(token uint64) *term {
	for i := len(m.terms) - 1; i >= 0; i-- {
		if m.terms[i].token == token {
			return &m.terms[i]
		}
	}
	return nil
}

// deadline returns the end of the lease of a term, by the renewals that were seen.
func (m *Model) deadline(t *term) time.Duration {
	if m.renewal.term == t.token {
		return m.renewal.at + m.renewal.lease
	}
	return t.from + m.screen.Lease
}

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
