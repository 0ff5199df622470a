package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Config holds the elections of a fleet and the settings of this member. The zero value of a field
// means its default:
//
//	field       default                    limits
//	Election    as tenure.Config, but with
//	            Spread a Precedence of
//	            1 s, or of a lease if the
//	            store is polled
//	Elections   none                       names, each once
//	Spread      false
//	Members     64                         1 to 1,024; the same for all members
//	Presence    half of the lease          from the store's shortest lease to 1 h
//	Settle      5 s                        at most 1 h; negative is none
//	HandOvers   50                         at least 1
type Config struct {
	// Election holds the settings of this member in each election. Do not set Nominator. With
	// Spread the fleet is the Nominator, so do not set NomineeOnly or Priority either. The fleet
	// shortens Tuning.Renew by up to a tenth and Tuning.Precedence by up to a quarter. The amount
	// differs between elections, so that they do not all renew or claim at the same moment. A
	// leader writes once each Renew: 1,000 elections with a Lease of 15 s take about 210 writes per
	// second in all. Metrics count the elections but not the seats; for many elections use
	// metrics.NewSummary.
	Election tenure.Config
	// Elections are the names of the elections. Each is a key in the store, without the name of the
	// fleet before it. New keeps a copy; SetElections changes them.
	Elections []string

	// Spread assigns each election to a member, which leads it. Each member is assigned at most an
	// equal share plus 5 %, or an equal share rounded up if this is more. A member may lead more
	// for a while, if it won elections whose assigned member did not claim them. When members come
	// and go, elections are handed over. Without Spread the first member to claim leads.
	Spread bool
	// Members is the number of seats, and so the maximum number of members with assignments. More
	// members may run: they claim elections that no assigned member claims.
	Members int
	// Presence is the lease of a seat: how long a member may be silent until its elections are
	// assigned to others. The default is never below the store's shortest lease. Keep it shorter
	// than Election.Lease minus Election.Tuning.Renew. Then all members know of a crash before the
	// first lease of the crashed member's elections ends.
	Presence time.Duration
	// Settle is how long a new member waits before it gets elections of the others, so that a
	// member that soon ends or crashes causes no hand-over. Each further arrival restarts the wait,
	// which is at most twice Settle. The new member gets elections only when it has also renewed
	// its seat once after the wait. A member renews its seat every third of Presence. If all
	// members are new, a Settle above 1 s counts as 1 s. A member that was cut off does not wait if
	// it has a seat again within Election.Lease: it gets its elections back at once.
	Settle time.Duration
	// HandOvers is how many elections this member hands over at a time to their assigned members.
	// A hand-over lasts until another member leads, for FinishWithin and two Precedences at most.
	// If this member is ending, it lasts until the release, for 200 ms at most. Then the next one
	// starts.
	HandOvers int
}

func (c Config) withDefaults(store driver.Store) Config {
	c.Members = cmp.Or(c.Members, 64)
	c.HandOvers = cmp.Or(c.HandOvers, 50)
	c.Settle = max(0, cmp.Or(c.Settle, 5*time.Second))
	c.Presence = cmp.Or(c.Presence, defaultPresence(store, c.lease()))
	if c.Spread {
		c.Election.Tuning.Precedence = cmp.Or(c.Election.Tuning.Precedence, c.precedence(store))
	}
	return c
}

// precedence returns the default of Precedence. It is short if the store pushes changes. Otherwise
// the assigned member may read up to a lease later.
func (c *Config) precedence(store driver.Store) time.Duration {
	if driver.AbilitiesOf(store).Watcher != nil && !c.Election.Tuning.NoWatch {
		return time.Second
	}
	return c.lease()
}

// defaultPresence returns half of the lease, or the store's shortest lease if that is longer.
func defaultPresence(store driver.Store, lease time.Duration) time.Duration {
	return max((lease / 2).Truncate(time.Millisecond), min(driver.AbilitiesOf(store).MinLease(), lease))
}

// lease returns the lease of the elections, or tenure's default.
func (c *Config) lease() time.Duration { return cmp.Or(c.Election.Lease, record.DefaultLease) }

// finishWithin returns FinishWithin of the elections, or tenure's default.
func (c *Config) finishWithin() time.Duration { return cmp.Or(c.Election.FinishWithin, 10*time.Second) }

func (c *Config) validate(name string) error {
	problems := []error{c.checkSpread(), checkNames(name, c.Elections)}
	if name == "" {
		problems = append(problems, problem("Name", name, "is empty", ""))
	}
	if c.Members < 1 || c.Members > 1024 {
		problems = append(problems, outside("Members", c.Members, "from 1 to 1024"))
	}
	if c.HandOvers < 1 {
		problems = append(problems, outside("HandOvers", c.HandOvers, "at least 1"))
	}
	if c.Settle > time.Hour {
		problems = append(problems, outside("Settle", c.Settle, "at most 1h"))
	}
	return errors.Join(problems...)
}

func problem(field string, value any, what, remedy string) error {
	return &tenure.ConfigError{Field: field, Value: value, Problem: what, Remedy: remedy}
}

func outside(field string, value any, limits string) error {
	return problem(field, value, fmt.Sprintf("is %v", value), "it must be "+limits)
}

func (c *Config) checkSpread() error {
	e := &c.Election
	const remedy = "leave it unset with Spread, which alone decides which member has precedence"
	switch {
	case e.Nominator != nil:
		return problem("Election.Nominator", e.Nominator, "is set, but one serves one election and not many", "leave it nil")
	case c.Spread && e.NomineeOnly:
		return problem("Election.NomineeOnly", true, "is true", remedy)
	case c.Spread && e.Priority != 0:
		return problem("Election.Priority", e.Priority, fmt.Sprintf("is %d", e.Priority), remedy)
	}
	return nil
}

// checkNames refuses duplicate names, and names that the fleet needs for its seats.
func checkNames(fleet string, names []string) error {
	var problems []error
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range sorted {
		if i > 0 && name == sorted[i-1] {
			problems = append(problems, problem("Elections", name, fmt.Sprintf("has %q twice", name), ""))
		}
		if strings.HasPrefix(name, seatPrefix(fleet)) {
			problems = append(problems, problem("Elections", name, fmt.Sprintf("has %q", name),
				fmt.Sprintf("names that begin with %s are for the seats", seatPrefix(fleet))))
		}
	}
	return errors.Join(problems...)
}

// settingsKinds is the number of different settings among the elections of a fleet: enough that
// elections do not all renew at once, and few so that they can be shared.
const settingsKinds = 16

// settingsOf returns the settings of one kind. All members use the same kind for one election, and
// so the same Renew. Precedence differs between members, so that members that wait for an absent
// one do not all claim at the same moment.
func (c *Config) settingsOf(n int, own uint64) tenure.Config {
	e := c.Election
	renew := cmp.Or(e.Tuning.Renew, c.lease()/3)
	e.Tuning.Renew = renew - renew/10*time.Duration(n)/settingsKinds
	e.Tuning.Precedence -= e.Tuning.Precedence / 4 * time.Duration(scramble(own^uint64(n))%settingsKinds) / settingsKinds
	return e
}
