package dashboard

import (
	"cmp"
	"time"

	"github.com/tenure-go/tenure/internal/story"
)

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
	// changes that were asked for. The alert TenureFlapping has the same numbers; docs/observe.md
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
	case !e.known:
		return unknown, cmp.Or(e.trouble, trouble{Reason: notYet})
	case r.Alarm && led:
		return alarmed, e.alarm
	case r.Alarm:
		return vacant, e.alarm
	case !led && e.trouble != trouble{}:
		return unknown, e.trouble
	case !led && e.since.IsZero():
		return unknown, trouble{Reason: notYet}
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
