package tenure

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/clock"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// MaxLease is the longest lease there is: a constant of the protocol.
const MaxLease = record.MaxLease

// Clock is where an election gets its time from; see SystemClock and StandardClock.
type Clock = clock.Clock

// Reading is one look at all clocks of a process.
type Reading = clock.Reading

// Instant is what of a Reading decides how long a lease lasts.
type Instant = clock.Instant

// SystemClock reads the machine's clocks: on Linux CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW and CLOCK_BOOTTIME, so that
// neither a time daemon that slews the clock nor a suspended machine makes two leaders. It is the default.
func SystemClock() Clock { return clock.System{} }

// StandardClock is what package time offers and nothing else: for virtual time, such as in testing/synctest.
func StandardClock() Clock { return clock.Standard{} }

// Config says how to take part in an election. The zero value of each field is its default:
//
//	field          default                      limits
//	ID             host name and process id     256 bytes
//	Address        none                         256 bytes
//	Metadata       none                         1 KiB of keys and values in all
//	Priority       0                            -1,000,000 to 1,000,000
//	Nominator      none
//	Precedence     Lease                        at most 1 h
//	NomineeOnly    false                        needs a Nominator
//	Lease          15 s                         whole milliseconds, from the store's least to its most, 1 h if it has none
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
//	Clock          SystemClock()
//	Logger         discards
//	OnEvent        none
type Config struct {
	// ID names this candidate to people and to those who name a successor. It is a label: two processes with the same
	// ID never lead at once.
	ID string
	// Address is published in the record while this candidate leads, for those who want to reach the leader.
	Address string
	// Metadata is published likewise. New keeps a copy.
	Metadata map[string]string

	// Priority says who is to lead rather: a candidate that has been well for two leases and has a higher one than the
	// leader asks it to hand over, at most once in ten leases. It orders nobody while nobody leads.
	Priority int

	// Nominator says whether this candidate is the one that is to lead. A leader that no longer is gets asked to finish, with
	// ErrNominationLost; a nominee that sees another lead asks it as one of a higher Priority would, which must be 0 here. It
	// has no part in keeping leaders apart. Nil: there is none.
	Nominator driver.Nominator
	// Precedence is how much later than the nominee another candidate claims, should no nominee do so.
	Precedence time.Duration
	// NomineeOnly has nobody but the nominee claim, however long nobody leads.
	NomineeOnly bool

	// Lease is how long a leader may be silent, by the clock of another, before that takes over.
	Lease time.Duration
	// Renew is the time from one renewal to the next.
	Renew time.Duration
	// StopWithin is how long the work may take to stop after the hard context ended, without anybody else leading
	// meanwhile. It is taken from the lease.
	StopWithin time.Duration
	// FinishWithin is how long the work may take to finish after it was asked to, while the lease is still renewed.
	// After it renewing stops.
	FinishWithin time.Duration
	// Grace is how long a new leader waits, holding the lease, before it is told that it leads.
	Grace time.Duration
	// Splay is the upper bound of a random delay before the first claim, to spread processes that start together.
	Splay time.Duration
	// Poll is the time between reads of a store that does not push changes, in transitions and in trouble: while it is not
	// known that somebody leads and renews. Each interval is drawn anew from 90 to 110 % of it.
	Poll time.Duration
	// PollStable is the same while a leader is seen to renew. Whatever it is, the store is read when the lease of a leader
	// that was not heard of would be over; so longer than Lease has no effect. See WorstFailover for its price.
	PollStable time.Duration
	// NoWatch follows by reading alone, though the store can push changes.
	NoWatch bool
	// Retry is how long to wait after the first, the second, ... store operation in a row that failed, before the next;
	// after the last of these it is Renew, and for a leader, who has until its deadline, a quarter of Renew. The default's are at
	// most a quarter and a half of Renew.
	Retry []time.Duration

	// Drift is the bound r of this machine's clocks: local seconds per true second lie in [1-r,
	// 1+r]. Members may have different bounds. The record states the leader's, and a member whose
	// bound is larger waits longer for its lease.
	Drift float64
	// TimerLateness is how late a timer may fire on this machine, for the sake of those who rely on the contexts.
	TimerLateness time.Duration
	// Backoff is the delay before the n-th campaign in a row after leadership was declined, n from 1.
	Backoff func(n int) time.Duration
	// Clock is where time comes from.
	Clock Clock

	// Logger is told every event. Trouble whose cause goes on is logged again after 10 s, 20 s and
	// so on up to 1 h, with "times": how often it was met since. Siblings count together.
	Logger *slog.Logger
	// OnEvent is told every event, in order, one at a time. A slow one costs nothing but events: after 1,024 the
	// oldest are dropped, and Event.Missed says how many.
	OnEvent func(Event)
}

// Margin is the part of a lease that its holder does not use, so that its term is over on its own clock before anybody
// else's wait can be: Lease * 2r/(1+r) for clocks that run apart, plus TimerLateness, plus StopWithin. Config must be
// one that New accepts; unset fields count with their defaults.
func (c Config) Margin() time.Duration {
	c = c.withDefaults()
	return protocol.Margin(c.Lease, c.Drift, c.TimerLateness, c.StopWithin)
}

// WorstFailover is the longest time from a leader's last renewal until another claims its place, if it dies and the
// store answers at once: the lease, and where nothing is pushed the longest time between two reads before it,
//
//	pushed:  Lease
//	polled:  Lease + min(1.1 * PollStable, Lease)
//
// It is measured by the clock of the member that claims, which may run slower than true time:
// divide it by 1 - Drift, and add up to 9 % while a time daemon slews that clock. To it come the
// latency of the store, twice, how late timers fire, and Precedence where there is a Nominator and
// no nominee claims. The mean of a polled one is half a PollStable less, and with many followers
// the first of them is there far sooner. All members are taken to have the same Config, which must
// be one that New accepts; unset fields count with their defaults.
func (c Config) WorstFailover(pushed bool) time.Duration {
	c = c.withDefaults()
	if pushed && !c.NoWatch {
		return c.Lease
	}
	gap := max(c.PollStable, c.Poll)
	return c.Lease + min(gap+gap/10, c.Lease)
}

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = defaultID()
	}
	if c.Clock == nil {
		c.Clock = SystemClock()
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

// validate finds everything that is wrong with what was given, at once. What follows from another
// problem, or from a default, is left out.
func (c *Config) validate(store driver.Store, name string, given *Config) error {
	timing := errors.Join(c.checkLease(store), c.checkDrift(), given.checkLimits(), given.checkRetry(MaxLease))
	if timing == nil {
		timing = errors.Join(c.checkMargin(), between("PollStable", c.PollStable, c.Poll, time.Hour), c.checkRetry(c.Renew))
	}
	if err := errors.Join(c.checkRecord(), checkName(store, name), timing, c.checkNomination()); err != nil {
		return invalid(name, err)
	}
	return nil
}

// checkLimits looks at each time by itself. Those that are 0 have their defaults.
func (c *Config) checkLimits() error {
	var problems []error
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
			problems = append(problems, between(f.name, f.value, f.least, f.most))
		}
	}
	return errors.Join(problems...)
}

func invalid(name string, err error) error { return fmt.Errorf("tenure: election %q: %w", name, err) }

func checkName(store driver.Store, name string) error {
	if name == "" {
		return errors.New("the name of the election is empty")
	}
	if b, ok := store.(driver.Bounded); ok {
		if err := b.CheckKey(name); err != nil {
			return fmt.Errorf("the store cannot hold this name: %w", err)
		}
	}
	return nil
}

func (c *Config) checkLease(store driver.Store) error {
	least, most := time.Millisecond, MaxLease
	if b, ok := store.(driver.Bounded); ok {
		least = b.MinLease()
	}
	if k, ok := store.(driver.Capped); ok {
		most = min(most, k.MaxLease())
	}
	if err := between("Lease", c.Lease, least, most); err != nil {
		return err
	}
	if c.Lease%time.Millisecond != 0 {
		return fmt.Errorf("Lease is %v; it must be whole milliseconds", c.Lease)
	}
	return nil
}

func (c *Config) checkRetry(most time.Duration) error {
	if len(c.Retry) > maxRetry {
		return fmt.Errorf("Retry has %d waits, more than %d", len(c.Retry), maxRetry)
	}
	for i, d := range c.Retry {
		if err := between(fmt.Sprintf("Retry[%d]", i), d, 0, most); err != nil {
			return err
		}
	}
	return nil
}

// checkNomination: one thing decides who leads rather, the Nominator or the Priority.
func (c *Config) checkNomination() error {
	switch {
	case c.Nominator != nil && c.Priority != 0:
		return fmt.Errorf("Priority is %d; with a Nominator, which decides who leads rather, it must be 0", c.Priority)
	case c.Nominator == nil && c.NomineeOnly:
		return errors.New("NomineeOnly without a Nominator: nobody would ever lead")
	}
	return nil
}

// maxRetry bounds how many tries may follow one another faster than Renew.
const maxRetry = 10

func (c *Config) checkDrift() error {
	if math.IsNaN(c.Drift) || c.Drift < 0 || c.Drift >= 0.5 {
		return fmt.Errorf("Drift is %v; it is a bound such as 0.01 and must lie in [0, 0.5)", c.Drift)
	}
	return nil
}

// checkRecord: quotes and the like take up to six bytes in JSON, so what holds each limit may still be too long together.
func (c *Config) checkRecord() error {
	err := errors.Join(record.CheckName("ID", c.ID), record.CheckName("Address", c.Address),
		record.CheckMetadata(c.Metadata), record.CheckPriority(c.Priority))
	if err != nil {
		return err
	}
	random := strings.Repeat("0", 16)
	_, err = record.Encode(record.Record{
		LeaderID: c.ID, LeaderAddr: c.Address, Metadata: c.Metadata, LastUpdated: time.Unix(0, 1), Lease: MaxLease,
		Term: record.MaxTerm, Seq: record.MaxTerm, Incarnation: strings.Repeat("0", record.MaxToken), Nonce: random,
		Priority: -record.MaxPriority, Drift: record.MaxDrift,
		Released: true, Successor: strings.Repeat("x", record.MaxName),
	})
	if err != nil {
		return fmt.Errorf("ID, Address and Metadata do not fit into one record: %w", err)
	}
	return nil
}

// checkMargin: between a renewal and the deadline there must be time to try twice.
func (c *Config) checkMargin() error {
	margin := protocol.Margin(c.Lease, c.Drift, c.TimerLateness, c.StopWithin)
	usable := c.Lease - margin
	if c.Renew+2*time.Millisecond > usable {
		return fmt.Errorf("Lease is %v, of which %v are kept back for clock drift, TimerLateness and StopWithin; Renew, which is %v, "+
			"does not fit into the rest; lengthen Lease, or shorten Renew or StopWithin",
			c.Lease, margin.Round(time.Millisecond), c.Renew)
	}
	if c.Grace < 0 || c.Grace >= usable {
		return fmt.Errorf("Grace is %v; it must be at least 0 and below the usable %v of the Lease", c.Grace, usable)
	}
	return nil
}

func between(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%s is %v; it must be from %v to %v", field, d, least, most)
	}
	return nil
}
