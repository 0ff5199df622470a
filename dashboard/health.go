package dashboard

import (
	"cmp"
	"time"
)

// health is the health of an election.
type health string

// The kinds of health.
const (
	vacant   health = "vacant"   // nobody leads
	alarmed  health = "alarm"    // an operator should look
	flapping health = "flapping" // its leader changes often
	tight    health = "tight"    // a renewal came close to its deadline
	unknown  health = "unknown"  // the store has not answered, or does not
	fine     health = "ok"
)

// worst orders the kinds of health, from the worst.
var worst = map[health]int{vacant: 0, alarmed: 1, flapping: 2, tight: 3, unknown: 4, fine: 5}

const (
	flappingFrom = 5 // changes of leader within an hour
	tightBelow   = 0.25
	tightWithin  = 10 * time.Minute
)

// row is one election in the overview.
type row struct {
	key
	Health  health    `json:"health"`
	Problem string    `json:"problem,omitempty"`
	Leader  string    `json:"leader,omitempty"`
	Address string    `json:"address,omitempty"`
	Term    uint64    `json:"term,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Lease   int64     `json:"lease_ms,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	Changes int       `json:"changes"`
	// LeastLeft is the smallest part of the lease that was left at a renewal, if any was seen.
	LeastLeft *float64 `json:"least_left,omitempty"`
}

// row returns the present state for the overview.
func (e *election) row(now time.Time) row {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := row{
		key: e.key, Leader: e.leader, Address: e.address, Since: e.since, Lease: e.lease.Milliseconds(), Renewed: e.renewed,
		Changes: e.changes(now), LeastLeft: e.leastLeft(now),
	}
	if e.leader != "" {
		r.Term = e.term
	}
	r.Health, r.Problem = e.judge(&r)
	return r
}

// judge returns the health and the problem. It runs under the lock.
func (e *election) judge(r *row) (h health, problem string) {
	switch {
	case !e.known:
		return unknown, cmp.Or(e.trouble, "the store has not answered yet")
	case e.alarm != "":
		if e.leader == "" {
			return vacant, e.alarm
		}
		return alarmed, e.alarm
	case e.leader == "" && e.trouble != "":
		return unknown, e.trouble
	case e.leader == "" && e.since.IsZero():
		return unknown, "the store has not answered yet"
	case e.leader == "":
		return vacant, e.vacancy
	case r.Changes >= flappingFrom:
		return flapping, e.trouble
	case r.LeastLeft != nil && *r.LeastLeft < tightBelow:
		return tight, e.trouble
	}
	return fine, e.trouble
}

// changes returns how often the leader has changed within an hour. It runs under the lock.
func (e *election) changes(now time.Time) (n int) {
	for i := 1; i < len(e.terms); i++ {
		if age := now.Sub(e.terms[i].From); 0 <= age && age < time.Hour { // a clock may go back
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

// compare orders rows: the worst first, then by name.
func compare(a, b row) int {
	return cmp.Or(cmp.Compare(worst[a.Health], worst[b.Health]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
}
