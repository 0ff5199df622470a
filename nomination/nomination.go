// Package nomination is for systems that decide, from outside of an election, which of its
// candidates should lead, such as a consumer group that assigns a partition. The nominee has
// precedence. A nomination is no lease: several candidates may be nominated at once, or none, and
// the election still has at most one leader. Set it as Config.Nomination of package tenure. Package
// fleet spreads elections in this way.
package nomination

import (
	"errors"
	"time"
)

// ErrWithdrawn is the cause with which a leader is asked to finish that is no longer the nominee.
var ErrWithdrawn = errors.New("the nomination ended")

// Config says how the candidates of a process are nominated. The zero value nominates none. The
// guarantee of one leader does not depend on these fields.
//
//	field       default    limits
//	Nominator   none
//	Only        false      needs a Nominator
//	Precedence  the lease  at most 1 h; negative: none
type Config struct {
	// Nominator returns the Nominator of this process's candidate in an election. It is called once
	// for each election when that is made, and must not call the group that makes it. Nil, and a
	// nil result, mean that there is no nominee.
	//
	// A leader that stops being the nominee is asked to finish, with ErrWithdrawn. A nominee that
	// sees another leader asks it to hand over, as a candidate of higher Priority would. Priority
	// must be 0 with a Nominator.
	Nominator func(election string) Nominator
	// Only lets a candidate claim only while it is the nominee, however long nobody leads.
	Only bool
	// Precedence is the extra time that any other candidate waits for a nominee to claim. It has
	// no effect without a Nominator.
	Precedence time.Duration
}

// By returns a Config with one Nominator, for a process with one election.
func By(n Nominator) Config {
	return Config{Nominator: func(string) Nominator { return n }}
}

// Nominator decides whether one candidate of an election is the nominee. If it no longer knows the
// nominee, it must report false within a bounded time: until then its candidate, if it leads, is
// not asked to hand over.
type Nominator interface {
	// Nominate calls the function see with true if this candidate is the nominee, else with false.
	// The first call comes soon and gives the present state. Then there is one call at each change,
	// until stop is called. Calls do not overlap. The function see returns at once. Stop does not
	// wait for a call of see that has begun; a nil stop is allowed. The election calls Nominate and
	// stop in turn, never two of them at once.
	Nominate(see func(nominated bool)) (stop func())
}

// Gate is a Nominator that also decides when this candidate may lead at all. Use it for work that
// can also be led outside of the election, such as by a member of the same consumer group that uses
// another library.
type Gate interface {
	Nominator
	// MayLead reports whether this candidate may lead now. While it may not, it claims nothing, and
	// is asked to finish if it leads. The election asks before each of its steps, under its lock:
	// answer at once, from memory and the clock, and call no method of the election. When the
	// answer changes, call see, the function that Nominate received.
	MayLead() bool
}

// VacancyListener is a Nominator that can look for the new nominee sooner if it knows that there is
// no leader.
type VacancyListener interface {
	Nominator
	// Vacant receives true when this candidate sees no leader any more, and false when it sees one
	// again. After each Nominate, the listener assumes that there is a leader. Vacant must return
	// at once. The election calls it only between Nominate and stop, one call at a time.
	Vacant(vacant bool)
}
