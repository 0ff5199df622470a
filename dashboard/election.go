package dashboard

import (
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
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
	interval time.Duration // between two looks where nothing is pushed
	hub      *hub
	history  *history
	observed *tenure.Election
	store    driver.Store
	story    story.Story
	stop     func()

	// mu is taken before the story's lock, so that facts come in the story's order.
	mu       sync.Mutex
	known    bool   // the store has answered
	pushed   bool   // the store pushes changes at present
	trouble  string // what the store's last failure was; empty once it answers
	alarm    string // until the next leader
	vacancy  string // why nobody leads
	leader   string
	address  string
	term     uint64
	since    time.Time // when the leader, or the vacancy, was first seen
	lease    time.Duration
	renewed  time.Time
	sharp    bool          // that was pushed, and there was no trouble since
	late     time.Duration // how long before it was seen that renewal may have been sent
	sight    sight
	dark     time.Time // since when the leader is out of sight; zero: it is not
	gaps     []gap     // when nothing was seen
	value    []byte    // the record as it is in the store, at most maxText of it
	size     int       // of all of it
	digest   string    // of all of it
	terms    []term    // the last one is open while there is a leader
	renewals []renewal
	events   []event
	lastID   uint64
	lastTerm uint64 // the ID of a term
}

// sight is when the store showed something, and how.
type sight struct {
	before time.Time // the sight before it
	at     time.Time
	pushed bool
}

// key names an election.
type key struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// term is one leader's time. In a store that was deleted and made again, its number may come twice.
type term struct {
	ID          uint64     `json:"id,omitempty"` // counts them; 0 in older histories
	Incarnation string     `json:"incarnation,omitempty"`
	Leader      string     `json:"leader"`
	Address     string     `json:"address,omitempty"`
	Term        uint64     `json:"term"`
	From        time.Time  `json:"from"`
	To          *time.Time `json:"to,omitempty"`
	Ended       string     `json:"ended,omitempty"`
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

// see takes an entry that the store showed, perhaps by a push.
func (e *election) see(entry driver.Entry, pushed bool, now time.Time) {
	pushes := pushed || e.observed.Status().Pushed
	e.mu.Lock()
	defer e.mu.Unlock()
	back := !e.known || e.trouble != ""
	if e.known || pushes { // the first read comes before the first push
		e.pushed = pushes
	}
	e.known, e.trouble = true, ""
	e.sight = sight{e.sight.at, now, pushed}
	if !e.dark.IsZero() {
		e.gaps = bounded(append(e.gaps, gap{e.dark, now}), maxGaps)
		e.dark = time.Time{}
	}
	if !entry.Unverified {
		e.value = slices.Clone(entry.Value[:min(len(entry.Value), maxText)])
		e.size, e.digest = len(entry.Value), digest(entry.Value)
	}
	e.take(e.story.See(entry, pushed, now))
	if back {
		e.hub.changed(e.key)
	}
}

// hear takes an event of the library.
func (e *election) hear(event tenure.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.take(e.story.Hear(event))
}

// begin takes the first status that is known.
func (e *election) begin(s tenure.Status, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.take(e.story.Begin(s, e.key.Name, id))
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
		if !e.troubled(f) {
			return
		}
	case story.Asked, story.Released:
	}
	e.note(f)
	e.hub.changed(e.key)
}

// troubled takes trouble, and reports whether it is news. While the store does not answer, and
// where one cause comes again and again, it is none: it would displace all other events.
func (e *election) troubled(f *story.Item) (news bool) {
	e.sharp = false
	was := e.trouble
	if n := len(e.events) - 1; was == "" && n >= 0 {
		if last := &e.events[n]; last.What == string(story.Trouble) && f.At.Sub(last.At) < time.Hour {
			was = last.Text
		}
	}
	another := was == "" || loglimit.Cause(was, e.key.Name) != loglimit.Cause(f.Text, e.key.Name)
	news = e.trouble == "" && another
	if e.trouble == "" || another {
		e.trouble = f.Text
		e.hub.changed(e.key)
	}
	return news
}

func (e *election) renew(f *story.Item) {
	last, sharp := e.renewed, e.sharp && e.sight.pushed
	e.renewed, e.lease, e.sharp, e.late = f.At, f.Lease, e.sight.pushed, time.Second
	switch before := e.sight.before; {
	case before.IsZero():
		e.late = f.Lease
	case !sharp:
		e.late += f.At.Sub(before)
	}
	apart := f.At.Sub(last)
	missed := apart >= f.Lease // a leader does not renew after its lease
	if missed || !sharp || f.Term != e.term || last.IsZero() {
		return
	}
	r := renewal{f.At, 1 - float64(apart)/float64(f.Lease)}
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
	incarnation := f.Event.Leader.Incarnation
	if n := len(e.terms); n > 0 && e.terms[n-1].is(&f.Event.Leader) {
		t := &e.terms[n-1] // it has another address, or was unseen
		t.Incarnation, t.Address, t.To, t.Ended, e.since = incarnation, f.Address, nil, "", t.From
		e.keepTerm()
		return
	}
	e.closeTerm(f)
	e.lastTerm++
	one := term{ID: e.lastTerm, Incarnation: incarnation, Leader: f.Who, Address: f.Address, Term: f.Term, From: f.At}
	e.terms = bounded(append(e.terms, one), maxTerms)
	e.keepTerm()
}

func (t *term) is(of *tenure.Leader) bool {
	return t.Term == of.Term && t.Leader == of.ID && (t.Incarnation == of.Incarnation || t.Incarnation == "")
}

// end closes a term, also if the clock went back.
func (t *term) end(at time.Time) {
	if at.Before(t.From) {
		at = t.From
	}
	t.To = &at
}

// closeTerm completes the last term, now that the next one shows how it ended.
func (e *election) closeTerm(next *story.Item) {
	if len(e.terms) == 0 {
		return
	}
	t := &e.terms[len(e.terms)-1]
	if t.To == nil || t.To.After(next.At) {
		t.end(next.At)
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
	if n := len(p.terms); n > 0 {
		e.lastTerm = p.terms[n-1].ID
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
	if e.trouble != "" {
		e.dark = f.At
	}
	if n := len(e.terms); n > 0 && e.terms[n-1].To == nil {
		e.terms[n-1].end(f.At)
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
