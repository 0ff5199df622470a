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
	"github.com/tenure-go/tenure/nomination"
)

// Config holds the elections of a fleet and the settings of this member. The zero value of a field
// means its default:
//
//	field       default                    limits
//	Election    as tenure.Config, but a
//	            Precedence of 1 s, or of
//	            a lease on a polled store
//	Elections   none                       names, each once
//	Members     64                         1 to 1,024; the same for all members
//	Presence    half of the lease          from the store's shortest lease to 1 h
//	Settle      5 s                        at most 1 h; negative is none
//	HandOvers   50                         at least 1
type Config struct {
	// Election holds the settings of this member in each election. The fleet is the Nominator, so
	// leave Priority unset, and all of Nomination but Precedence. The fleet shortens Tuning.Renew
	// by up to a tenth and Nomination.Precedence by up to a quarter. The amount differs between
	// elections, so that they do not all renew or claim at the same moment. A leader writes once
	// each Renew: 1,000 elections with a Lease of 15 s take about 210 writes per second in all.
	// Metrics count the elections but not the seats; for many elections use metrics.NewSummary.
	Election tenure.Config
	// Elections are the names of the elections. Each is a key in the store, without the name of the
	// fleet before it. New keeps a copy; SetElections changes them.
	Elections []string

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

// withDefaults returns the settings with their defaults. In Election only Precedence has its
// default; full has all.
func (c Config) withDefaults(store driver.Store) (cfg Config, full tenure.Config) {
	lease := c.Election.WithDefaults().Lease
	c.Members = cmp.Or(c.Members, 64)
	c.HandOvers = cmp.Or(c.HandOvers, 50)
	c.Settle = max(0, cmp.Or(c.Settle, 5*time.Second))
	c.Presence = cmp.Or(c.Presence, defaultPresence(store, lease))
	by := &c.Election.Nomination
	by.Precedence = cmp.Or(by.Precedence, c.precedence(store, lease))
	return c, c.Election.WithDefaults()
}

// precedence returns the default of Precedence. It is short if the store pushes changes. Otherwise
// the assigned member may read up to a lease later.
func (c *Config) precedence(store driver.Store, lease time.Duration) time.Duration {
	if driver.AbilitiesOf(store).Watcher != nil && !c.Election.Tuning.NoWatch {
		return time.Second
	}
	return lease
}

// defaultPresence returns half of the lease, or the store's shortest lease if that is longer.
func defaultPresence(store driver.Store, lease time.Duration) time.Duration {
	return max((lease / 2).Truncate(time.Millisecond), min(driver.AbilitiesOf(store).MinLease(), lease))
}

func (c *Config) validate(name string) problems {
	found := slices.Concat(c.checkNomination(), checkNames(name, c.Elections))
	if name == "" {
		found = append(found, problem("Name", name, "is empty", ""))
	}
	if c.Members < 1 || c.Members > 1024 {
		found = append(found, outside("Members", c.Members, "from 1 to 1024"))
	}
	if c.HandOvers < 1 {
		found = append(found, outside("HandOvers", c.HandOvers, "at least 1"))
	}
	if c.Settle > time.Hour {
		found = append(found, outside("Settle", c.Settle, "at most 1h"))
	}
	return found
}

type problems = []tenure.FieldError

// invalid returns nil if there are no problems.
func invalid(fleet string, found problems) error {
	if len(found) == 0 {
		return nil
	}
	return &tenure.ConfigError{Subject: fmt.Sprintf("fleet %q", fleet), Fields: found}
}

func problem(field string, value any, what, remedy string) tenure.FieldError {
	return tenure.FieldError{Field: field, Value: value, Problem: what, Remedy: remedy}
}

func outside(field string, value any, limits string) tenure.FieldError {
	return problem(field, value, fmt.Sprintf("is %v", value), "it must be "+limits)
}

func (c *Config) checkNomination() (found problems) {
	const remedy = "leave it unset: the fleet alone decides which member has precedence"
	e := &c.Election
	if e.Nomination.Nominator != nil {
		found = append(found, problem("Election.Nomination.Nominator", nil, "is set", remedy))
	}
	if e.Nomination.Only {
		found = append(found, problem("Election.Nomination.Only", true, "is true", remedy))
	}
	if e.Priority != 0 {
		found = append(found, problem("Election.Priority", e.Priority, fmt.Sprintf("is %d", e.Priority), remedy))
	}
	return found
}

// checkNames refuses duplicate names, and names that the fleet needs for its seats.
func checkNames(fleet string, names []string) (found problems) {
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range sorted {
		if i > 0 && name == sorted[i-1] {
			found = append(found, problem("Elections", name, fmt.Sprintf("has %q twice", name), ""))
		}
		if strings.HasPrefix(name, seatPrefix(fleet)) {
			found = append(found, problem("Elections", name, fmt.Sprintf("has %q", name),
				fmt.Sprintf("names that begin with %s are for the seats", seatPrefix(fleet))))
		}
	}
	return found
}

// newGroup returns a group with these settings. The lease is that of the field leaseField, and the
// others are those of Election.
func (f *Fleet) newGroup(cfg tenure.Config, leaseField string) (*tenure.Group, error) {
	g, err := tenure.NewGroup(f.store, cfg)
	if wrong, ok := errors.AsType[*tenure.ConfigError](err); ok {
		for i := range wrong.Fields {
			wrong.Fields[i].Field = strings.Replace("Election."+wrong.Fields[i].Field, "Election.Lease", leaseField, 1)
		}
		return nil, invalid(f.name, wrong.Fields)
	}
	return g, err
}

// settingsKinds is the number of different settings among the elections of a fleet: enough that
// elections do not all renew at once, and few so that they can be shared.
const settingsKinds = 16

// settingsOf returns the settings of one kind. All members use the same kind for one election, and
// so the same Renew. Precedence differs between members, so that members that wait for an absent
// one do not all claim at the same moment.
func (f *Fleet) settingsOf(n int) tenure.Config {
	e := f.cfg.Election
	renew := cmp.Or(e.Tuning.Renew, f.full.Tuning.Renew)
	e.Tuning.Renew = renew - renew/10*time.Duration(n)/settingsKinds
	by := &e.Nomination
	by.Precedence -= by.Precedence / 4 * time.Duration(scramble(f.own^uint64(n))%settingsKinds) / settingsKinds
	by.Nominator = func(string) nomination.Nominator { return f.making }
	return e
}
