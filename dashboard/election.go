package dashboard

import (
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
)

// The bounds of what is remembered of one election.
const (
	maxTerms    = 200
	maxRenewals = 240
	maxEvents   = 200
	maxText     = 4 << 10 // of a record, in bytes
)

// election is what is known of one election. Its facts come from the story, in their order.
type election struct {
	key      key
	pushed   bool          // renewals are seen when they happen
	interval time.Duration // otherwise: between two looks
	hub      *hub
	history  *history
	observed *tenure.Election
	store    driver.Store
	story    story.Story
	stop     func()

	mu       sync.Mutex
	known    bool   // the store has answered
	trouble  string // what the store's last failure was; empty once it answers
	alarm    string // until the next leader
	vacancy  string // why nobody leads
	leader   string
	address  string
	term     uint64
	since    time.Time // when the leader, or the vacancy, was first seen
	lease    time.Duration
	renewed  time.Time
	value    []byte // the record as it is in the store, at most maxText of it
	size     int    // of all of it
	digest   string // of all of it
	terms    []term // the last one is open while there is a leader
	renewals []renewal
	events   []event
	lastID   uint64
}

// key names an election.
type key struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// term is one leader's time.
type term struct {
	Leader  string     `json:"leader"`
	Address string     `json:"address,omitempty"`
	Term    uint64     `json:"term"`
	From    time.Time  `json:"from"`
	To      *time.Time `json:"to,omitempty"`
	Ended   string     `json:"ended,omitempty"`
	// Took is the time from the last sign of this leader to the next one's, and Least the least
	// that it had to be.
	Took  *float64 `json:"took_ms,omitempty"`
	Least *float64 `json:"least_ms,omitempty"`
}

// renewal is one, with the part of the lease that was left.
type renewal struct {
	At   time.Time `json:"at"`
	Left float64   `json:"left"`
}

// event is a line of the list of events.
type event struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Leader string    `json:"leader,omitempty"`
	Term   uint64    `json:"term,omitempty"`
	Text   string    `json:"text,omitempty"`
}

// vacancy is the kind of event for a time without a leader. A brief one is left out.
const (
	vacancy = "vacant"
	brief   = time.Second
)

// The ways in which a term ends, as far as it can be seen from outside.
const (
	endReleased = "released"
	endDeleted  = "deleted"
	endSilence  = "silence"
	endUnknown  = "unknown"
)

var endings = map[string]string{story.Graceful: endReleased, story.Forced: endDeleted, story.Silence: endSilence}

// see takes an entry that the store showed.
func (e *election) see(entry driver.Entry, now time.Time) {
	facts := e.story.See(entry, now)
	e.mu.Lock()
	defer e.mu.Unlock()
	back := !e.known || e.trouble != ""
	e.known, e.trouble = true, ""
	if !entry.Unverified {
		e.value = slices.Clone(entry.Value[:min(len(entry.Value), maxText)])
		e.size, e.digest = len(entry.Value), digest(entry.Value)
	}
	e.take(facts)
	if back {
		e.hub.changed(e.key)
	}
}

// hear takes an event of the library.
func (e *election) hear(event tenure.Event) {
	facts := e.story.Hear(event)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.take(facts)
}

// begin takes the first status that is known.
func (e *election) begin(s tenure.Status, id string) {
	facts := e.story.Begin(s, e.key.Name, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.take(facts)
}

func (e *election) take(facts []story.Item) {
	for i := range facts {
		e.fact(&facts[i])
	}
}

// fact runs under the lock.
func (e *election) fact(f *story.Item) {
	switch f.What {
	case story.Renewed:
		e.renew(f)
		return
	case story.Elected:
		e.elected(f)
	case story.Nobody:
		e.vacate(f)
	case story.Alarm:
		e.alarm = f.Text
	case story.Trouble:
		if e.trouble == f.Text {
			return
		}
		e.trouble = f.Text
	case story.Asked, story.Released:
	}
	e.note(f)
	e.hub.changed(e.key)
}

func (e *election) renew(f *story.Item) {
	last := e.renewed
	e.renewed, e.lease = f.At, f.Lease
	if !e.pushed || f.Term != e.term || last.IsZero() || f.Lease <= 0 {
		return
	}
	r := renewal{f.At, max(0, 1-float64(f.At.Sub(last))/float64(f.Lease))}
	e.renewals = bounded(append(e.renewals, r), maxRenewals)
	e.hub.detail(e.key, "renewal", func() any {
		return struct {
			renewal
			Renewed time.Time `json:"renewed"`
			Range   *timeLeft `json:"left_range"`
		}{r, f.At, e.timeLeft(f.At)}
	})
}

func (e *election) elected(f *story.Item) {
	e.vacancy, e.alarm = "", ""
	e.leader, e.address, e.term, e.since = f.Who, f.Address, f.Term, f.At
	if n := len(e.terms); n > 0 && e.terms[n-1].is(f) { // it has another address, or was unseen
		t := &e.terms[n-1]
		t.Address, t.To, t.Ended, e.since = f.Address, nil, "", t.From
		e.keepTerm()
		return
	}
	e.closeTerm(f)
	e.terms = bounded(append(e.terms, term{Leader: f.Who, Address: f.Address, Term: f.Term, From: f.At}), maxTerms)
	e.keepTerm()
}

func (t *term) is(f *story.Item) bool { return t.Term == f.Term && t.Leader == f.Who }

// closeTerm completes the last term, now that the next one shows how it ended.
func (e *election) closeTerm(next *story.Item) {
	if len(e.terms) == 0 {
		return
	}
	t := &e.terms[len(e.terms)-1]
	if t.To == nil || t.To.After(next.At) {
		at := next.At
		t.To = &at
	}
	t.Ended = endUnknown
	if how, ok := endings[next.Text]; ok {
		t.Ended = how
		took := millis(next.Took)
		t.Took = &took
		if next.Least >= 0 {
			least := millis(next.Least)
			t.Least = &least
		}
	}
	e.keepTerm()
}

// keepTerm saves the last term.
func (e *election) keepTerm() {
	e.history.add(line{Source: e.key.Source, Name: e.key.Name, Term: &e.terms[len(e.terms)-1]})
}

// resume begins with what is known of the past.
func (e *election) resume(p past) {
	e.terms, e.events = p.terms, p.events
	if n := len(p.events); n > 0 {
		e.lastID = p.events[n-1].ID
	}
}

// past is what is known by now.
func (e *election) past() past {
	e.mu.Lock()
	defer e.mu.Unlock()
	return past{clone(e.terms), clone(e.events)}
}

func (e *election) vacate(f *story.Item) {
	e.vacancy, e.since, e.leader, e.address, e.renewed = f.Text, f.At, "", "", time.Time{}
	if n := len(e.terms); n > 0 && e.terms[n-1].To == nil {
		at := f.At
		e.terms[n-1].To = &at
		e.keepTerm()
	}
}

// leading returns the leader and its term.
func (e *election) leading() (leader string, term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader, e.term
}

// leaseSeen returns that of the last leader, or 0.
func (e *election) leaseSeen() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// note adds a line to the list of events.
func (e *election) note(f *story.Item) {
	text := f.Text
	if f.What == story.Elected {
		text = circumstances(f)
		if n := len(e.events) - 1; n >= 0 && e.events[n].What == vacancy && f.At.Sub(e.events[n].At) < brief {
			e.lastID, e.events = e.events[n].ID-1, e.events[:n] // each hand-over has one
		}
	}
	e.lastID++
	what := string(f.What)
	if f.What == story.Nobody {
		what = vacancy
	}
	one := event{e.lastID, f.At, what, f.Who, f.Term, text}
	e.events = bounded(append(e.events, one), maxEvents)
	e.history.add(line{Source: e.key.Source, Name: e.key.Name, Event: &one})
}

// circumstances are those of an election, in words.
func circumstances(f *story.Item) string {
	switch f.Text {
	case story.Graceful:
		return "after " + f.Before.ID + " released the lease"
	case story.Forced:
		return "after the record of " + f.Before.ID + " was deleted"
	case story.Silence:
		return "after " + f.Before.ID + " did not renew"
	}
	return ""
}

// record reads the value for people.
func (e *election) record() records.Record { return records.Read(driver.Entry{Value: e.value}) }

// bounded drops the oldest, a quarter at a time.
func bounded[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[len(all)-most*3/4:])
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
