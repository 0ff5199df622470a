package tenure

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
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
//	Lease          15 s                         whole milliseconds, from the store's least to 1 h
//	Renew          Lease / 3                    room for two attempts before the deadline
//	StopWithin     0                            part of the lease, see Margin
//	FinishWithin   10 s                         at least 1 ms
//	Grace          0                            less than the lease without its margin
//	Splay          0                            at most 1 h
//	Poll           Renew                        at most 1 h
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

	// Lease is how long a leader may be silent before another takes over.
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
	// Poll is the time between reads of a store that cannot push changes.
	Poll time.Duration

	// Drift is the bound r of this machine's clocks: local seconds per true second lie in [1-r, 1+r].
	Drift float64
	// TimerLateness is how late a timer may fire on this machine, for the sake of those who rely on the contexts.
	TimerLateness time.Duration
	// Backoff is the delay before the n-th campaign in a row after leadership was declined, n from 1.
	Backoff func(n int) time.Duration
	// Clock is where time comes from.
	Clock Clock

	// Logger is told every event.
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
	orDefault(&c.FinishWithin, 10*time.Second)
	orDefault(&c.Poll, c.Renew)
	orDefault(&c.TimerLateness, protocol.TimerLateness(c.Lease))
	c.Metadata = maps.Clone(c.Metadata)
	if c.Backoff == nil {
		c.Backoff = doubling(c.Lease)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
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

// validate finds everything that is wrong, at once.
func (c *Config) validate(store driver.Store, name string) error {
	problems := []error{
		c.checkRecord(), checkName(store, name), c.checkLease(store), c.checkDrift(), c.checkMargin(),
		between("FinishWithin", c.FinishWithin, time.Millisecond, 24*time.Hour),
		between("StopWithin", c.StopWithin, 0, MaxLease), between("Splay", c.Splay, 0, time.Hour),
		between("Poll", c.Poll, time.Millisecond, time.Hour), between("TimerLateness", c.TimerLateness, 0, MaxLease),
		between("Renew", c.Renew, time.Millisecond, MaxLease),
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("tenure: election %q: %w", name, err)
	}
	return nil
}

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
	least := time.Millisecond
	if b, ok := store.(driver.Bounded); ok {
		least = b.MinLease()
	}
	if err := between("Lease", c.Lease, least, MaxLease); err != nil {
		return err
	}
	if c.Lease%time.Millisecond != 0 {
		return fmt.Errorf("Lease is %v; it must be whole milliseconds", c.Lease)
	}
	return nil
}

func (c *Config) checkDrift() error {
	if math.IsNaN(c.Drift) || c.Drift < 0 || c.Drift >= 0.5 {
		return fmt.Errorf("Drift is %v; it is a bound such as 0.01 and must lie in [0, 0.5)", c.Drift)
	}
	return nil
}

// checkRecord: quotes and the like take up to six bytes in JSON, so what holds each limit may still be too long together.
func (c *Config) checkRecord() error {
	err := errors.Join(
		record.CheckName("ID", c.ID), record.CheckName("Address", c.Address), record.CheckMetadata(c.Metadata))
	if err != nil {
		return err
	}
	random := strings.Repeat("0", 16)
	_, err = record.Encode(record.Record{
		LeaderID: c.ID, LeaderAddr: c.Address, Metadata: c.Metadata, LastUpdated: time.Unix(0, 1), Lease: MaxLease,
		Term: record.MaxTerm, Seq: record.MaxTerm, Incarnation: random, Nonce: random,
		Released: true, Successor: strings.Repeat("x", record.MaxName),
	})
	if err != nil {
		return fmt.Errorf("ID, Address and Metadata do not fit into one record: %w", err)
	}
	return nil
}

// checkMargin: between a renewal and the deadline there must be time to try twice.
func (c *Config) checkMargin() error {
	if math.IsNaN(c.Drift) {
		return nil // there is none to speak of
	}
	margin := protocol.Margin(c.Lease, c.Drift, c.TimerLateness, c.StopWithin)
	usable := c.Lease - margin
	if c.Renew+2*time.Millisecond > usable {
		return fmt.Errorf("Renew is %v, but only %v of the Lease of %v is usable (%v are kept back for clock drift, "+
			"TimerLateness and StopWithin); lengthen Lease, or shorten Renew or StopWithin",
			c.Renew, usable.Round(time.Millisecond), c.Lease, margin.Round(time.Millisecond))
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
