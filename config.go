package tenure

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// MaxLease is the longest lease that the protocol allows.
const MaxLease = time.Hour

var _ = [1]int{}[MaxLease-record.MaxLease] // they are equal, or this does not compile

// Config holds the settings of one candidate in an election. The zero value of each field selects
// its default:
//
//	field          default                      limits
//	ID             host name and process id     256 bytes
//	Address        none                         256 bytes
//	Metadata       none                         1 KiB of keys and values in all
//	Priority       0                            -1,000,000 to 1,000,000
//	Nominator      none
//	Precedence     Lease                        at most 1 h
//	NomineeOnly    false                        needs a Nominator
//	Lease          15 s                         whole ms, the store's minimum to maximum (or 1 h)
//	Renew          Lease / 3                    room for two attempts before the deadline
//	StopWithin     0                            part of the lease, see Margin
//	FinishWithin   10 s                         at least 1 ms
//	Grace          0                            less than the lease without its margin
//	Splay          0                            at most 1 h
//	Poll           Renew                        1 ms to 1 h
//	PollStable     Lease                        Poll to 1 h
//	NoWatch        false
//	Retry          0, 100 ms, 1 s               at most 10, each from 0 to Renew
//	Drift          the clock's: 1 % on Linux    below 50 %
//	TimerLateness  Lease / 50, 25 to 100 ms     part of the lease, see Margin
//	Backoff        Lease * 2^(n-1), to 10 Lease
//	Clock          clock.System{}
//	Logger         discards
//	OnEvent        none
//
// Most defaults of 0 mean none. Where the default is something else, this is none, or close to it:
// 1 ns for Precedence and TimerLateness, 1 ms for FinishWithin, 1e-9 for Drift, an empty slice for
// Retry (not nil), and a function that returns 0 for Backoff.
type Config struct {
	// ID names this candidate for operators and for callers that name a successor. It is a label:
	// two processes with the same ID never lead at the same time.
	ID string
	// Address is published in the record while this candidate leads, for clients of the leader.
	Address string
	// Metadata is published in the same way. New keeps a copy.
	Metadata map[string]string

	// Priority makes a candidate with a higher value take over from a leader with a lower one. A
	// candidate that has been well for two leases asks such a leader to hand over, at most once in
	// ten leases. Priority does not order candidates while nobody leads.
	Priority int

	// Nominator decides whether this candidate is the nominee, which has precedence. A leader that
	// stops being the nominee is asked to finish, with ErrNominationLost. A nominee that sees
	// another leader asks it to hand over, as a candidate of higher Priority would. Priority must
	// be 0 here. A Nominator plays no part in keeping leaders apart. Nil: no candidate is
	// nominated.
	Nominator driver.Nominator
	// Precedence is how much later than the nominee another candidate claims if no nominee does.
	Precedence time.Duration
	// NomineeOnly lets only the nominee claim, however long nobody leads.
	NomineeOnly bool

	// Lease is how long a leader may be silent, by another candidate's clock, before that candidate
	// takes over.
	Lease time.Duration
	// Renew is the time from one renewal to the next.
	Renew time.Duration
	// StopWithin is how long the work may take to stop after the hard context ended. Nobody else
	// leads in this time, which is part of the lease.
	StopWithin time.Duration
	// FinishWithin is how long the work may take to finish after it was asked to. The lease is
	// renewed in this time, and not after it.
	FinishWithin time.Duration
	// Grace is how long a new leader holds the lease before its work starts.
	Grace time.Duration
	// Splay is the maximum random delay before the first claim. It spreads processes that start
	// together.
	Splay time.Duration
	// Poll is the time between reads of a store that does not push changes, in transitions and in
	// trouble: while no leader is known to renew. Each interval is drawn at random from 90 to 110 %
	// of it.
	Poll time.Duration
	// PollStable is the same while a leader is seen to renew. Values longer than Lease have no
	// effect: the store is always read when the lease of a silent leader would be over. See
	// WorstFailover for its cost.
	PollStable time.Duration
	// NoWatch makes the election follow by reads alone, even if the store can push changes.
	NoWatch bool
	// Retry lists the waits after the first, the second, ... store operation in a row that failed.
	// After the last of these the wait is Renew, or a quarter of Renew for a leader, which has only
	// until its deadline. The second and third default are at most a quarter and a half of Renew.
	Retry []time.Duration

	// Drift is the bound r of this machine's clocks: local seconds per true second lie in [1-r,
	// 1+r]. Members may have different bounds. The record states the leader's, and a member whose
	// bound is larger waits longer for its lease.
	Drift float64
	// TimerLateness is how late a timer may fire on this machine. It protects work that relies on
	// the contexts.
	TimerLateness time.Duration
	// Backoff returns the delay before the n-th campaign in a row after leadership was declined, n
	// from 1.
	Backoff func(n int) time.Duration
	// Clock is the source of time.
	Clock clock.Clock

	// Logger logs every event. Trouble with the same lasting cause is logged again after 10 s, 20 s
	// and so on up to 1 h, with "times": the number of times since the last line. The elections of a
	// Group count together.
	Logger *slog.Logger
	// OnEvent is called for each event, in order, one at a time. A slow one loses events and delays
	// nothing else: beyond 1,024 events in the queue the oldest are dropped, and Event.Missed
	// counts them.
	OnEvent func(Event)
}

// Margin returns the part of a lease that its holder does not use. It makes the term end on the
// holder's own clock before any other candidate's wait can end. It is the sum of Lease * 2r/(1+r),
// for clocks that run apart, TimerLateness and StopWithin. New must accept the Config. Unset fields
// count with their defaults.
func (c Config) Margin() time.Duration {
	c = c.withDefaults()
	return protocol.Margin(c.Lease, c.Drift, c.TimerLateness, c.StopWithin)
}

// WorstFailover returns the longest time from a leader's last renewal until another candidate
// claims its place, if the leader dies and the store answers at once. It is the lease, plus the
// longest time between two reads before that if the store does not push each change itself, or is
// nil:
//
//	pushed:  Lease
//	polled:  Lease + min(1.1 * PollStable, Lease)
//
// The time is by the clock of the member that claims, which may run slower than true time: divide
// it by 1 - Drift, and add up to 9 % while a time daemon slews that clock. Add the latency of the
// store, twice, the lateness of timers, and Precedence where there is a Nominator and no nominee
// claims. The mean of a polled failover is half a PollStable less, and with many followers the
// first of them claims far sooner. All members must have the same Config, which New must accept.
// Unset fields count with their defaults.
func (c Config) WorstFailover(store driver.Store) time.Duration {
	c = c.withDefaults()
	if pushes(store) && !c.NoWatch {
		return c.Lease
	}
	gap := max(c.PollStable, c.Poll)
	return c.Lease + min(gap+gap/10, c.Lease)
}

// pushes reports whether every change reaches all members. A driver.PeerPushed store cannot promise
// that.
func pushes(store driver.Store) bool {
	_, watched := store.(driver.Watcher)
	_, byPeers := store.(driver.PeerPushed)
	return watched && !byPeers
}

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = defaultID()
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Drift == 0 {
		c.Drift = c.Clock.Drift()
	}
	orDefault(&c.Lease, 15*time.Second)
	orDefault(&c.Renew, c.Lease/3)
	orDefault(&c.Precedence, c.Lease)
	orDefault(&c.FinishWithin, 10*time.Second)
	orDefault(&c.Poll, c.Renew)
	orDefault(&c.PollStable, max(c.Lease, c.Poll))
	orDefault(&c.TimerLateness, protocol.TimerLateness(c.Lease))
	if c.Retry == nil {
		c.Retry = []time.Duration{0, min(100*time.Millisecond, c.Renew/4), min(time.Second, c.Renew/2)}
	}
	if c.Backoff == nil {
		c.Backoff = doubling(c.Lease)
	}
	return c.clone()
}

// clone shares nothing with c that either of them may change.
func (c Config) clone() Config {
	c.Metadata, c.Retry = maps.Clone(c.Metadata), slices.Clone(c.Retry)
	return c
}

func orDefault(d *time.Duration, def time.Duration) {
	if *d == 0 {
		*d = def
	}
}

func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%.200s_%d", host, os.Getpid())
}

// doubling waits one lease, then two, four, eight, and ten from then on.
func doubling(lease time.Duration) func(int) time.Duration {
	return func(n int) time.Duration {
		return lease * time.Duration(min(1<<min(n-1, 10), 10))
	}
}

// validate returns all problems of the given Config and the name at once.
func (c *Config) validate(store driver.Store, name string, given *Config) error {
	return invalid(name, checkName(store, name), c.check(store, given), c.checkNomination())
}

// check returns all problems of the given Config but those of nomination. It leaves out those that
// follow from another problem, or from a default.
func (c *Config) check(store driver.Store, given *Config) problems {
	timing := slices.Concat(c.checkLease(store), c.checkDrift(), given.checkLimits(), given.checkRetry(MaxLease))
	if len(timing) == 0 {
		timing = slices.Concat(c.checkMargin(), between("PollStable", c.PollStable, c.Poll, time.Hour), c.checkRetry(c.Renew))
	}
	return slices.Concat(c.checkRecord(), timing)
}

// checkLimits checks each time by itself. Those that are 0 have their defaults.
func (c *Config) checkLimits() (found problems) {
	for _, f := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"FinishWithin", c.FinishWithin, time.Millisecond, 24 * time.Hour},
		{"StopWithin", c.StopWithin, 0, MaxLease},
		{"Splay", c.Splay, 0, time.Hour},
		{"Poll", c.Poll, time.Millisecond, time.Hour},
		{"PollStable", c.PollStable, time.Millisecond, time.Hour},
		{"TimerLateness", c.TimerLateness, 0, MaxLease},
		{"Renew", c.Renew, time.Millisecond, MaxLease},
		{"Precedence", c.Precedence, 0, time.Hour},
	} {
		if f.value != 0 {
			found = append(found, between(f.name, f.value, f.least, f.most)...)
		}
	}
	return found
}

func (c *Config) checkLease(store driver.Store) problems {
	least, most := time.Millisecond, MaxLease
	if b, ok := store.(driver.Bounded); ok {
		least = b.MinLease()
	}
	if k, ok := store.(driver.LeaseLimiter); ok {
		most = min(most, k.MaxLease())
	}
	if found := between("Lease", c.Lease, least, most); found != nil {
		return found
	}
	if c.Lease%time.Millisecond != 0 {
		return problem("Lease", c.Lease, fmt.Sprintf("is %v", c.Lease), "it must be whole milliseconds")
	}
	return nil
}

func (c *Config) checkRetry(most time.Duration) problems {
	if len(c.Retry) > maxRetry {
		return problem("Retry", c.Retry, fmt.Sprintf("has %d waits, more than %d", len(c.Retry), maxRetry), "")
	}
	for i, d := range c.Retry {
		if found := between(fmt.Sprintf("Retry[%d]", i), d, 0, most); found != nil {
			return found
		}
	}
	return nil
}

// checkNomination: either the Nominator or the Priority decides which candidate has precedence.
func (c *Config) checkNomination() problems {
	switch {
	case c.Nominator != nil && c.Priority != 0:
		return problem("Priority", c.Priority, fmt.Sprintf("is %d", c.Priority),
			"it must be 0 with a Nominator, which alone decides which candidate has precedence")
	case c.Nominator == nil && c.NomineeOnly:
		return problem("NomineeOnly", true, "is true without a Nominator, so no candidate can ever lead",
			"set Nominator, or leave NomineeOnly false")
	}
	return nil
}

// maxRetry bounds the number of tries in a row that are faster than Renew.
const maxRetry = 10

func (c *Config) checkDrift() problems {
	if math.IsNaN(c.Drift) || c.Drift < 0 || c.Drift >= 0.5 {
		return problem("Drift", c.Drift, fmt.Sprintf("is %v", c.Drift), "it is a bound such as 0.01 and must lie in [0, 0.5)")
	}
	return nil
}

// checkRecord also checks the total: quotes and the like take up to six bytes in JSON, so fields
// within their limits may be too long together.
func (c *Config) checkRecord() problems {
	found := slices.Concat(predicate("ID", c.ID, record.CheckName(c.ID)),
		predicate("Address", c.Address, record.CheckName(c.Address)),
		predicate("Metadata", c.Metadata, record.CheckMetadata(c.Metadata)),
		predicate("Priority", c.Priority, record.CheckPriority(c.Priority)))
	if len(found) > 0 {
		return found
	}
	random := strings.Repeat("0", 16)
	_, err := record.Encode(record.Record{
		LeaderID: c.ID, LeaderAddr: c.Address, Metadata: c.Metadata, LastUpdated: time.Unix(0, 1), Lease: MaxLease,
		Term: record.MaxTerm, Seq: record.MaxTerm, Incarnation: strings.Repeat("0", record.MaxToken), Nonce: random,
		Priority: -record.MaxPriority, Drift: record.MaxDrift,
		Released: true, Successor: strings.Repeat("x", record.MaxName),
	})
	if err != nil {
		return problem("Metadata", c.Metadata, fmt.Sprintf("does not fit into one record together with ID and Address: %v", err), "")
	}
	return nil
}

// checkMargin: the time between a renewal and the deadline must allow two tries.
func (c *Config) checkMargin() problems {
	margin := protocol.Margin(c.Lease, c.Drift, c.TimerLateness, c.StopWithin)
	usable := c.Lease - margin
	if c.Renew+2*time.Millisecond > usable {
		return problem("Lease", c.Lease, fmt.Sprintf("is %v, too short for Renew (%v) and a margin of %v for clock drift, "+
			"TimerLateness and StopWithin", c.Lease, c.Renew, margin.Round(time.Millisecond)),
			"lengthen Lease, or shorten Renew or StopWithin")
	}
	if c.Grace < 0 || c.Grace >= usable {
		return problem("Grace", c.Grace, fmt.Sprintf("is %v", c.Grace),
			fmt.Sprintf("it must be at least 0 and below the usable %v of the Lease", usable))
	}
	return nil
}
