package dashboard

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
)

// overview is the answer with many elections.
type overview struct {
	Now       time.Time      `json:"now"`
	Version   string         `json:"version,omitempty"`
	Actions   bool           `json:"actions"`
	Links     links          `json:"links"`
	Problem   string         `json:"problem,omitempty"` // a problem with the history
	Sources   []sourceRow    `json:"sources"`
	Counts    map[string]int `json:"counts"`
	Bad       int            `json:"bad"` // without a leader, or with an alarm
	Matching  int            `json:"matching"`
	Elections []row          `json:"elections"`
}

// links are the templates of links for each election.
type links struct {
	Log     string `json:"log,omitempty"`
	Runbook string `json:"runbook,omitempty"`
}

// sourceRow describes one store on the page.
type sourceRow struct {
	Name      string  `json:"name"`
	Pushed    bool    `json:"pushed"`
	Interval  int64   `json:"interval_ms,omitempty"`
	PerMinute float64 `json:"requests_per_minute"`
	PerMonth  float64 `json:"cost_per_month,omitempty"` // in dollars
	OK        bool    `json:"ok"`
	Problem   string  `json:"problem,omitempty"` // in plain words
	Detail    string  `json:"detail,omitempty"`  // the whole error
	// Away is since when the store has not answered, if it does not.
	Away      *time.Time `json:"away,omitempty"`
	Listed    time.Time  `json:"listed,omitzero"` // when its elections were last listed
	Elections int        `json:"elections"`
	// Silent are the members that do not report, with the reasons.
	Silent []string `json:"silent"`
}

// overview returns the rows that match the query, and have the health if one is given, in an order.
func (d *Dashboard) overview(query string, only health, by func(a, b row) int) overview {
	now := time.Now()
	o := overview{Now: now, Version: d.version, Actions: d.actionsAllowed, Links: d.links, Problem: d.history.problem(), Counts: map[string]int{"all": 0}, Elections: []row{}}
	for h := range worst {
		o.Counts[string(h)] = 0
	}
	query = strings.ToLower(query)
	for _, s := range d.sources {
		all := s.all()
		of := s.row(all)
		o.Sources = append(o.Sources, of)
		for _, e := range all {
			r := e.row(now, of.Away != nil)
			o.Counts["all"]++
			if r.Health == vacant || r.Alarm {
				o.Bad++
			}
			o.Counts[string(r.Health)]++
			if r.Alarm && r.Health != alarmed {
				o.Counts[string(alarmed)]++
			}
			if r.matches(query) && (only == "" || r.is(only)) {
				o.Elections = append(o.Elections, r)
			}
		}
	}
	slices.SortFunc(o.Elections, by)
	return o
}

// page keeps the rows from offset on.
func (o overview) page(offset, limit int) overview {
	o.Matching = len(o.Elections)
	o.Elections = o.Elections[min(offset, o.Matching):]
	o.Elections = o.Elections[:min(limit, len(o.Elections))]
	return o
}

func (r *row) matches(query string) bool {
	for _, text := range []string{r.Name, r.Source, r.Leader} {
		if strings.Contains(strings.ToLower(text), query) {
			return true
		}
	}
	return false
}

func (s *source) row(elections []*election) sourceRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := sourceRow{
		Name: s.Name, Pushed: pushes(s.store), Problem: s.problem.Reason, Detail: s.problem.Detail, Listed: s.listed,
		Elections: len(elections), Silent: s.reports.silent(),
	}
	if o := s.outage(); o != nil {
		r.Problem, r.Detail, r.Away = o.Reason, o.Detail, &o.From
	}
	r.OK = r.Problem == ""
	for _, e := range elections {
		if each := e.pollInterval(); each > 0 && e.observed != nil {
			r.Pushed = false
			r.PerMinute += float64(time.Minute) / float64(each)
		}
	}
	if s.store != nil && !r.Pushed {
		r.Interval = s.interval().Milliseconds()
		r.PerMonth = r.PerMinute * minutesInAMonth / 1000 * s.Price
	}
	return r
}

// pollInterval returns the interval, or the leader's lease if that is shorter, because the observer
// also reads when the lease would be over. It is 0 if the store pushes changes.
func (e *election) pollInterval() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pushed {
		return 0
	}
	return min(e.interval, cmp.Or(e.lease, e.interval))
}

const minutesInAMonth = 30 * 24 * 60

// detail is the answer about one election.
type detail struct {
	Now      time.Time   `json:"now"`
	Row      row         `json:"row"`
	Pushed   bool        `json:"pushed"` // the store pushes, so each renewal is seen
	Left     *timeLeft   `json:"left,omitempty"`
	Next     *time.Time  `json:"next_renewal,omitempty"`
	Record   recordRow   `json:"record"`
	Terms    []term      `json:"terms"`
	Unseen   []gap       `json:"unseen"`  // the dashboard did not run, or the store did not answer
	Outages  []outage    `json:"outages"` // of the store
	Renewals []renewal   `json:"renewals"`
	Events   []event     `json:"events"`
	Members  []memberRow `json:"members"`
	Presence presenceRow `json:"presence"` // how the members are known
	Jobs     []jobRow    `json:"jobs"`
	MoreJobs int         `json:"more_jobs,omitempty"` // which are not shown
}

// timeLeft is the range of the time left of a lease, as an observer can know it.
type timeLeft struct {
	Least int64 `json:"least_ms"`
	Most  int64 `json:"most_ms"`
}

// recordRow is the record in the store.
type recordRow struct {
	Kind    admin.Kind       `json:"kind"`
	Text    string           `json:"text,omitempty"`
	Bytes   int              `json:"bytes,omitempty"` // the size of the whole record
	Digest  string           `json:"digest,omitempty"`
	Updated time.Time        `json:"updated,omitzero"` // by the leader's clock
	Request *records.Request `json:"request,omitempty"`
}

func (s *source) detail(e *election) detail {
	d := e.detail(time.Now(), s.isAway())
	d.Members, d.Presence = s.reports.members(e.key.Name), s.reports.presence(e.key.Name)
	d.Jobs, d.MoreJobs = s.jobs.rows(e.key.Name, d.Now)
	if len(d.Terms) > 0 {
		d.Unseen = append(s.history.unseen(d.Terms[0].From), d.Unseen...)
	}
	d.addOutages(s.outagesSince(e.firstSeen()))
	return d
}

// addOutages adds the outages of the store. They replace the events that only tell of them.
func (d *detail) addOutages(all []outage) {
	d.Outages = all
	d.Events = slices.DeleteFunc(d.Events, func(e event) bool { return covers(all, &e) })
	for _, o := range all {
		text := o.Reason
		if o.To != nil {
			text += ", for " + units.Age(o.To.Sub(o.From))
		}
		d.Events = append(d.Events, event{At: o.From, What: storeAway, Text: text, Detail: o.Detail})
	}
	slices.SortStableFunc(d.Events, func(a, b event) int { return b.At.Compare(a.At) })
}

func (e *election) detail(now time.Time, away bool) detail {
	d := detail{Now: now, Row: e.row(now, away)}
	e.mu.Lock()
	defer e.mu.Unlock()
	d.Pushed, d.Left = e.pushed, e.timeLeft(now)
	if d.Left != nil {
		next := e.renewed.Add(e.lease / 3)
		d.Next = &next
	}
	d.Record = e.recordRow()
	d.Terms, d.Renewals, d.Unseen = clone(e.terms), clone(e.renewals), clone(e.unseen)
	if !e.unseenSince.IsZero() {
		d.Unseen = append(d.Unseen, gap{e.unseenSince, now})
	}
	d.Events = clone(e.events)
	slices.Reverse(d.Events)
	return d
}

// timeLeft counts from when the last renewal was seen. The leader counts from before it sent the
// renewal: at most sentBefore earlier. It runs under the lock.
func (e *election) timeLeft(now time.Time) *timeLeft {
	if e.leading.leader == "" || e.renewed.IsZero() {
		return nil
	}
	most := max(0, e.lease-now.Sub(e.renewed))
	return &timeLeft{max(0, most-e.sentBefore).Milliseconds(), most.Milliseconds()}
}

func (e *election) recordRow() recordRow {
	r := recordRow{Kind: admin.Absent, Text: readable(e.value), Bytes: e.size, Digest: e.digest}
	if len(e.value) == 0 {
		return r
	}
	read := e.record()
	r.Updated, r.Request = read.Updated, read.Wish()
	switch {
	case read.Held():
		r.Kind = admin.Held
	case read.Released:
		r.Kind = admin.Released
	case read.Vacant():
		r.Kind = admin.Vacant
	default:
		r.Kind = admin.Foreign
		if json.Valid(e.value) {
			r.Kind = admin.Malformed
		}
	}
	return r
}

// clone returns a copy that is never nil, as the page expects.
func clone[T any](all []T) []T { return append(make([]T, 0, len(all)), all...) }

// health is the health of an election.
type health string

// The kinds of health.
const (
	vacant   health = "vacant"   // nobody leads
	starting health = "starting" // nobody leads, which is normal for one lease at a first start
	alarmed  health = "alarm"    // an operator should look
	flapping health = "flapping" // its leader changes often
	tight    health = "tight"    // a renewal came close to its deadline
	unknown  health = "unknown"  // the store does not answer, or no renewal of the leader was seen
	fine     health = "ok"
)

// worst orders the kinds of health, from the worst.
var worst = map[health]int{vacant: 0, alarmed: 1, flapping: 2, tight: 3, unknown: 4, starting: 5, fine: 6}

const (
	// An election flaps if its leader changed flappingFrom times within flappingWithin, without the
	// changes that were asked for. The alert TenureFlapping has the same numbers; docs/failures.md
	// states them.
	flappingFrom   = 6
	flappingWithin = 15 * time.Minute
	tightBelow     = 0.25
	tightWithin    = 10 * time.Minute
)

// row is one election in the overview.
type row struct {
	key
	Health  health    `json:"health"`
	Alarm   bool      `json:"alarm,omitempty"`   // an operator should look, also if nobody leads
	Problem string    `json:"problem,omitempty"` // in plain words
	Detail  string    `json:"detail,omitempty"`  // the whole error
	Leader  string    `json:"leader,omitempty"`
	Address string    `json:"address,omitempty"`
	Term    uint64    `json:"term,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Lease   int64     `json:"lease_ms,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	AtLeast bool      `json:"at_least,omitempty"` // the term began before Since
	// Unconfirmed: the record names the leader, and no renewal was seen.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// LastKnown is when the row was true, if the store does not answer now.
	LastKnown *time.Time `json:"last_known,omitempty"`
	// Changes are those within flappingWithin that were not asked for.
	Changes int `json:"changes"`
	// LeastLeft is the smallest part of the lease that was left at a renewal, if any was seen.
	LeastLeft *float64 `json:"least_left,omitempty"`
}

// row returns the present state for the overview. Away says that the store does not answer.
func (e *election) row(now time.Time, away bool) row {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := row{
		key: e.key, Since: e.since, Lease: e.lease.Milliseconds(), Renewed: e.renewed,
		Changes: e.changes(now), LeastLeft: e.leastLeft(now), Alarm: e.alarm != trouble{},
	}
	of := e.leading
	if !e.unseenSince.IsZero() && of.leader == "" {
		of, r.Since = e.lastLed, time.Time{}
	}
	if seen := e.lastSight.at; (away || e.trouble != trouble{} && e.leading.leader == "") && !seen.IsZero() {
		r.LastKnown = &seen
	}
	r.Leader, r.Address, r.Unconfirmed = of.leader, of.address, of.unconfirmed
	if of.leader != "" {
		r.Term = of.term
		r.AtLeast = len(e.terms) > 0 && e.terms[len(e.terms)-1].AtLeast
	}
	var why trouble
	r.Health, why = e.judge(&r, away, now)
	r.Problem, r.Detail = why.Reason, why.Detail
	return r
}

// notYet is why nothing is known of an election at first.
const notYet = "the store has not answered yet"

// judge returns the health and the problem. It runs under the lock.
func (e *election) judge(r *row, away bool, now time.Time) (h health, why trouble) {
	led := e.leading.leader != ""
	switch {
	case away: // the store's own line has the reason
		return unknown, trouble{}
	case !led && e.since.IsZero():
		return unknown, cmp.Or(e.trouble, trouble{Reason: notYet})
	case r.Alarm && led:
		return alarmed, e.alarm
	case r.Alarm:
		return vacant, e.alarm
	case !led && e.trouble != trouble{}:
		return unknown, e.trouble
	case !led && now.Before(e.expected):
		return starting, trouble{Reason: e.vacancy}
	case !led:
		return vacant, trouble{Reason: e.vacancy}
	case r.Unconfirmed:
		return unknown, cmp.Or(e.trouble, trouble{Reason: story.NotConfirmed(e.leading.written, now)})
	case r.Changes >= flappingFrom:
		return flapping, e.trouble
	case r.LeastLeft != nil && *r.LeastLeft < tightBelow:
		return tight, e.trouble
	}
	return fine, e.trouble
}

// is reports whether the row belongs to those of a health. An alarm without a leader is both.
func (r *row) is(h health) bool { return r.Health == h || h == alarmed && r.Alarm }

// changes returns how often the leader has changed of late, without the changes that were asked
// for. It runs under the lock.
func (e *election) changes(now time.Time) (n int) {
	for i := 1; i < len(e.terms); i++ {
		before := &e.terms[i-1]
		asked := before.Asked && before.Ended == endReleased
		// A clock may go back.
		if age := now.Sub(e.terms[i].From); !asked && 0 <= age && age < flappingWithin {
			n++
		}
	}
	return n
}

// leastLeft runs under the lock.
func (e *election) leastLeft(now time.Time) (least *float64) {
	for i := len(e.renewals) - 1; i >= 0 && now.Sub(e.renewals[i].At) < tightWithin; i-- {
		if left := e.renewals[i].Left; least == nil || left < *least {
			least = &left
		}
	}
	return least
}

// orders are the orders of rows, by their names. Rows that are equal are in the first one.
var orders = map[string]func(a, b row) int{
	"":        compare,
	"name":    func(a, b row) int { return cmp.Or(cmp.Compare(a.Name, b.Name), compare(a, b)) },
	"store":   func(a, b row) int { return cmp.Or(cmp.Compare(a.Source, b.Source), compare(a, b)) },
	"leader":  func(a, b row) int { return cmp.Or(cmp.Compare(a.Leader, b.Leader), compare(a, b)) },
	"since":   func(a, b row) int { return cmp.Or(b.Since.Compare(a.Since), compare(a, b)) },
	"changes": func(a, b row) int { return cmp.Or(cmp.Compare(b.Changes, a.Changes), compare(a, b)) },
}

// compare orders rows: the worst first, then by name.
func compare(a, b row) int {
	return cmp.Or(cmp.Compare(worst[a.Health], worst[b.Health]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
}
