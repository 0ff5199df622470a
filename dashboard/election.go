package dashboard

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
)

// Limits of the data that is kept for one election.
const (
	maxTerms    = 200
	maxRenewals = 240
	maxEvents   = 200
	maxText     = 4 << 10 // of a record, in bytes
)

// election is the known state of one election. It follows from the items of the story, in their
// order.
type election struct {
	key      key
	interval time.Duration // between two reads where nothing is pushed
	hub      *hub
	history  *history
	store    driver.Store
	story    story.Story
	observed *tenure.Election // under the source's lock; nil: it has left the group

	// mu is taken before the story's lock, so that items are applied in the story's order.
	mu            sync.Mutex
	pushed        bool      // the store pushes changes at present
	absent        bool      // the store has no record
	trouble       trouble   // the store's last failure; empty once it answers
	alarm         trouble   // the last alarm, until the next leader
	vacancy       string    // why nobody leads
	expected      time.Time // until then it is normal that nobody leads
	vacantNonce   string    // of the last vacant record
	leading       leading   // empty if nobody leads
	lastLed       leading   // the leader before nobody led
	since         time.Time // when the leader, or the vacancy, was first seen
	lease         time.Duration
	renewed       time.Time
	renewalPushed bool          // the last renewal was pushed, without trouble since
	sentBefore    time.Duration // how long before renewed the leader may have sent it
	lastSight     sighting
	unseenSince   time.Time // since when the store has not answered; zero: it answers
	unseen        []gap     // earlier times without an answer of the store
	value         []byte    // the record as it is in the store, at most maxText of it
	size          int       // of the whole record
	digest        string    // of the whole record
	terms         []term    // the last one is open while there is a leader
	renewals      []renewal
	events        []event
	lastID        uint64
	lastTerm      uint64 // the ID of a term
}

// leading is a leader as its record names it.
type leading struct {
	leader  string
	address string
	term    uint64
	// unconfirmed: no renewal was seen. Written is when the record was written, by its writer's
	// clock; zero if that is not known.
	unconfirmed bool
	written     time.Time
}

// sighting is one answer or push of the store.
type sighting struct {
	previous time.Time // the time of the sighting before
	at       time.Time
	pushed   bool
}

// key names an election.
type key struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// term is one term. In a store that was deleted and recreated, its number may recur.
type term struct {
	ID          uint64     `json:"id,omitempty"` // counts them; 0 in older histories
	Incarnation string     `json:"incarnation,omitempty"`
	Leader      string     `json:"leader"`
	Address     string     `json:"address,omitempty"`
	Term        uint64     `json:"term"`
	From        time.Time  `json:"from"`
	AtLeast     bool       `json:"at_least,omitempty"` // it began before From
	To          *time.Time `json:"to,omitempty"`
	Ended       string     `json:"ended,omitempty"`
	Asked       bool       `json:"asked,omitempty"` // its leader was asked to hand over
	// Renewed is the last renewal, if the lease ran out after it.
	Renewed *time.Time `json:"renewed,omitempty"`
	// Took is the time from the last sign of this leader to the first of the next leader. Least is
	// the shortest possible value of Took.
	Took  *float64 `json:"took_ms,omitempty"`
	Least *float64 `json:"least_ms,omitempty"`
	// TookAtLeast: Took counts from when the last sign was found, so it may be longer.
	TookAtLeast bool `json:"took_at_least,omitempty"`
	// Down is how long nobody could act until the next leader; 0 if that is not known.
	Down float64 `json:"down_ms,omitempty"`
	// Tardy: the change of leader took longer than it should.
	Tardy bool `json:"tardy,omitempty"`
}

// renewal is one renewal, with the part of the lease that was left.
type renewal struct {
	At   time.Time `json:"at"`
	Left float64   `json:"left"`
}

// event is one line in the list of events.
type event struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Leader string    `json:"leader,omitempty"`
	Term   uint64    `json:"term,omitempty"`
	Text   string    `json:"text,omitempty"`
	Detail string    `json:"detail,omitempty"` // the whole error
}

// vacancy is the kind of event for a time without a leader. One that is shorter than briefVacancy
// is left out. The kind storeAway is an outage of the store.
const (
	vacancy      = "vacant"
	storeAway    = "store"
	briefVacancy = time.Second
)

// The ways in which a term ends, as far as it can be seen from outside.
const (
	endReleased = "released"
	endDeleted  = "deleted"
	endSilence  = "silence"
	endUnknown  = "unknown"
)

var endings = map[string]string{story.Graceful: endReleased, story.Forced: endDeleted, story.Silence: endSilence}

// onEntry applies an entry that was read, or pushed.
func (e *election) onEntry(entry driver.Entry, pushed bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	back := e.trouble != trouble{}
	e.trouble = trouble{}
	e.lastSight = sighting{e.lastSight.at, now, pushed}
	if !e.unseenSince.IsZero() {
		e.unseen = bounded(append(e.unseen, gap{e.unseenSince, now}), maxGaps)
		e.unseenSince = time.Time{}
	}
	if !entry.Unverified {
		e.value = slices.Clone(entry.Value[:min(len(entry.Value), maxText)])
		e.size, e.digest = len(entry.Value), digest(entry.Value)
	}
	e.applyAll(e.story.See(entry, pushed, now))
	if !entry.Unverified {
		e.expectLeader(now)
	}
	if back {
		e.hub.changed(e.key)
	}
}

// expectLeader notes that a candidate has put a vacant record, and waits for its lease: nobody led
// before, so no event tells of it.
func (e *election) expectLeader(now time.Time) {
	if e.leading.leader != "" {
		return
	}
	r := e.record()
	if !r.Vacant() || r.Nonce == e.vacantNonce {
		return
	}
	e.vacantNonce, e.vacancy, e.expected = r.Nonce, story.Vacant(r.Lease), now.Add(r.Lease)
	e.hub.changed(e.key)
}

// onEvent applies an event of package tenure.
func (e *election) onEvent(event tenure.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.applyAll(e.story.Hear(event))
}

// onStatus applies a status. Events show what happened between two of them.
func (e *election) onStatus(s tenure.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pushed != s.Pushed {
		e.pushed = s.Pushed
		e.hub.changed(e.key)
	}
	e.absent = s.Record.Kind == admin.Absent
	e.applyAll(e.story.Begin(s, e.key.Name, observerID))
}

// vanished reports whether the election has no record, and has long had no leader.
func (e *election) vanished(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.absent && e.leading.leader == "" && e.trouble == trouble{} && now.Sub(e.since) >= vanishedAfter
}

func (e *election) applyAll(facts []story.Item) {
	for i := range facts {
		e.apply(&facts[i])
	}
}

// apply runs under the lock.
func (e *election) apply(f *story.Item) {
	switch f.What {
	case story.Renewed:
		e.renew(f)
		return
	case story.Named:
		e.renew(f)
		e.named(f)
	case story.Elected:
		e.elected(f)
	case story.Nobody:
		e.vacate(f)
	case story.Alarm:
		e.alarm = trouble{Reason: f.Event.Cause.Error()}
		if errors.Is(f.Event.Cause, &tenure.StoreError{Kind: driver.Foreign}) {
			e.alarm = trouble{"the key holds bytes that are not an election record", f.Event.Cause.Error()}
		}
	case story.Trouble:
		if !e.recordTrouble(f) {
			return
		}
	case story.Asked:
		if n := len(e.terms) - 1; n >= 0 && e.terms[n].Term == f.Term && e.terms[n].Leader == f.Who {
			e.terms[n].Asked = true
			e.keepTerm()
		}
	case story.Released:
	}
	e.addEvent(f)
	e.hub.changed(e.key)
}

// recordTrouble records trouble, and reports whether it belongs in the list of events. Repeated
// trouble with one cause does not, since it would displace all other events.
func (e *election) recordTrouble(f *story.Item) (news bool) {
	e.renewalPushed = false
	if e.leading.leader == "" && e.unseenSince.IsZero() && e.lastSight.at.Before(e.since) {
		e.unseenSince = e.since // the lease ran out because nothing was seen
	}
	was := e.trouble.Detail
	if n := len(e.events) - 1; was == "" && n >= 0 {
		if last := &e.events[n]; last.What == string(story.Trouble) && f.At.Sub(last.At) < time.Hour {
			was = last.Detail
		}
	}
	another := was == "" || loglimit.Cause(was, e.key.Name) != loglimit.Cause(f.Text, e.key.Name)
	first := e.trouble == trouble{}
	if first || another {
		e.trouble = troubleOf(f.Event.Cause)
		e.hub.changed(e.key)
	}
	return first && another
}

func (e *election) renew(f *story.Item) {
	last, exact := e.renewed, e.renewalPushed && e.lastSight.pushed
	e.renewed, e.lease, e.renewalPushed, e.sentBefore = f.At, f.Lease, e.lastSight.pushed, time.Second
	switch before := e.lastSight.previous; {
	case before.IsZero():
		e.sentBefore = f.Lease
	case !exact:
		e.sentBefore += f.At.Sub(before)
	}
	apart := f.At.Sub(last)
	missed := apart >= f.Lease // a leader does not renew after its lease
	if missed || !exact || f.Term != e.leading.term || last.IsZero() {
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
	e.lead(f)
	incarnation := f.Event.Leader.Incarnation
	if n := len(e.terms); n > 0 && e.terms[n-1].is(&f.Event.Leader) {
		t := &e.terms[n-1] // the same leader: with another address, or seen again
		t.Incarnation, t.Address, t.To, t.Ended, e.since = incarnation, f.Address, nil, "", t.From
		e.keepTerm()
		return
	}
	e.closeTerm(f)
	e.lastTerm++
	one := term{
		ID: e.lastTerm, Incarnation: incarnation, Leader: f.Who, Address: f.Address, Term: f.Term, From: f.At, AtLeast: f.AtLeast,
	}
	e.terms = bounded(append(e.terms, one), maxTerms)
	e.keepTerm()
}

// lead takes a leader that is named or elected.
func (e *election) lead(f *story.Item) {
	e.vacancy, e.alarm, e.since, e.expected = "", trouble{}, f.At, time.Time{}
	e.leading = leading{f.Who, f.Address, f.Term, f.What == story.Named, f.Written}
}

// named takes a leader that was not seen to lead, so it begins no term.
func (e *election) named(f *story.Item) {
	e.lead(f)
	if n := len(e.terms); n > 0 && !e.terms[n-1].is(&f.Event.Leader) {
		e.endOpenTerm(f.At)
	}
}

func (t *term) is(of *tenure.Leader) bool {
	return t.Term == of.Term && t.Leader == of.ID && (t.Incarnation == of.Incarnation || t.Incarnation == "")
}

// end closes a term. It never ends before it began, even if the clock went back.
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
		at := next.At
		if end := next.LeaseEnded; !end.IsZero() && end.Before(at) {
			at = end
		}
		t.end(at)
	}
	t.Ended = endUnknown
	if how, ok := endings[next.Text]; ok {
		t.Ended = how
		t.setTimes(next, story.Late(e.pushed, e.lease, e.interval))
	}
	e.keepTerm()
}

// setTimes takes the times of the change to the next leader.
func (t *term) setTimes(next *story.Item, late time.Duration) {
	took := units.Millis(next.Took)
	t.Took, t.TookAtLeast, t.Down = &took, next.TookAtLeast, units.Millis(next.Downtime)
	t.Tardy = story.Tardy(next.Took, next.Least, late)
	if next.Least >= 0 {
		least := units.Millis(next.Least)
		t.Least = &least
	}
	if next.Text == story.Silence && !next.TookAtLeast {
		t.silentFrom(next.At.Add(-next.Took))
	}
}

// silentFrom records the last renewal before the lease ran out.
func (t *term) silentFrom(renewed time.Time) {
	if renewed.Before(t.From) {
		renewed = t.From
	}
	t.Renewed = &renewed
}

// endOpenTerm ends the last term if it is open.
func (e *election) endOpenTerm(at time.Time) {
	if n := len(e.terms); n > 0 && e.terms[n-1].To == nil {
		e.terms[n-1].end(at)
		e.keepTerm()
	}
}

// keepTerm saves the last term in the history.
func (e *election) keepTerm() {
	e.history.add(line{Source: e.key.Source, Name: e.key.Name, Term: &e.terms[len(e.terms)-1]})
}

// resume begins with the terms and events of the history.
func (e *election) resume(p past) {
	e.terms, e.events = p.terms, p.events
	if n := len(p.events); n > 0 {
		e.lastID = p.events[n-1].ID
	}
	if n := len(p.terms); n > 0 {
		e.lastTerm = p.terms[n-1].ID
	}
}

// past returns the known terms and events.
func (e *election) past() past {
	e.mu.Lock()
	defer e.mu.Unlock()
	return past{clone(e.terms), clone(e.events)}
}

func (e *election) vacate(f *story.Item) {
	e.lastLed = e.leading
	if e.trouble != (trouble{}) {
		e.unseenSince = f.At
	}
	if n := len(e.terms); n > 0 && e.terms[n-1].To == nil && !f.LeaseEnded.IsZero() {
		e.terms[n-1].silentFrom(f.LeaseEnded.Add(-e.lease))
	}
	e.endOpenTerm(f.At)
	e.vacancy, e.since, e.expected, e.renewed, e.leading = f.Text, f.At, f.Expected, time.Time{}, leading{}
}

// leader returns the leader and its term.
func (e *election) leader() (id string, term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading.leader, e.leading.term
}

// seenAt returns when the store last showed the election; zero if it never did.
func (e *election) seenAt() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lastSight.at
}

// firstSeen returns the time of the oldest term or event, or now if there is none.
func (e *election) firstSeen() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := time.Now()
	if len(e.terms) > 0 {
		first = e.terms[0].From
	}
	if len(e.events) > 0 && e.events[0].At.Before(first) {
		first = e.events[0].At
	}
	return first
}

// leaseSeen returns the lease of the last leader, or 0.
func (e *election) leaseSeen() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// addEvent adds an item to the list of events.
func (e *election) addEvent(f *story.Item) {
	text, detail, at := f.Text, "", f.At
	switch f.What {
	case story.Trouble:
		text, detail = e.trouble.Reason, e.trouble.Detail
	case story.Alarm:
		text, detail = e.alarm.Reason, e.alarm.Detail
	case story.Elected:
		if at, text = f.Seen(), f.After("did not renew"); text == "" && f.AtLeast {
			text = "it led before it was first seen"
		}
		if n := len(e.events) - 1; n >= 0 && e.events[n].What == vacancy && f.At.Sub(e.events[n].At) < briefVacancy {
			e.lastID, e.events = e.events[n].ID-1, e.events[:n] // omit a brief vacancy
		}
	}
	e.lastID++
	what := string(f.What)
	if f.What == story.Nobody {
		what = vacancy
	}
	one := event{e.lastID, at, what, f.Who, f.Term, text, detail}
	e.events = bounded(append(e.events, one), maxEvents)
	e.history.add(line{Source: e.key.Source, Name: e.key.Name, Event: &one})
}

// record decodes the value for display.
func (e *election) record() records.Record { return records.Read(driver.Entry{Value: e.value}) }

// bounded drops the oldest quarter if there are more than most.
func bounded[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[len(all)-most*3/4:])
}
