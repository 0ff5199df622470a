package tenure

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/metrics"
)

// MaxLease is the longest lease that the protocol allows: one hour.
const MaxLease = driver.MaxLease

var _ = [1]int{}[MaxLease-record.MaxLease] // they are equal, or this does not compile

// Config holds the settings of one candidate in an election. The zero value of each field selects
// its default:
//
//	field         default                 limits
//	ID            host, process, random   256 bytes
//	Address       none                    256 bytes
//	Metadata      none                    1 KiB of keys and values in all
//	Priority      0                       -1,000,000 to 1,000,000
//	Nominator     none
//	NomineeOnly   false                   needs a Nominator
//	Lease         15 s                    whole ms; 1 ms to 1 h, or the store's narrower limits
//	StopWithin    none                    part of the lease, see Margin
//	FinishWithin  10 s                    1 ms to 24 h; None is 1 ms
//	Clock         clock.System{}
//	Logger        discards
//	OnEvent       none
//	Metrics       none
//	Tuning        see there
//
// ID, Address and Metadata must also fit into one record of 4 KiB, as JSON.
//
// Give all members of an election the same Lease and Tuning, except Drift and TimerLateness, which
// describe a machine. All other fields may differ. Election.Reconfigure says when different leases
// are safe.
type Config struct {
	// ID names this candidate for operators, observers and callers that name a successor. It may be
	// the name of its host or pod. It is a label: two processes with the same ID never lead at the
	// same time. The default is the host name, the process id and five random letters or digits; it
	// stays the same as long as the process lives.
	ID string
	// Address is published in the record while this candidate leads, for clients of the leader.
	Address string
	// Metadata is published in the same way. New keeps a copy.
	Metadata map[string]string

	// Priority makes a candidate with a higher value take over from a leader with a lower one. The
	// candidate asks the leader to hand over, at most once in ten leases, and not before it has
	// campaigned for two leases without a failed store call. Priority does not order candidates
	// while nobody leads.
	Priority int
	// Nominator decides whether this candidate is the nominee, which has precedence. A leader that
	// stops being the nominee is asked to finish, with ErrNominationLost. A nominee that sees
	// another leader asks it to hand over, as a candidate of higher Priority would. Priority must
	// be 0 with a Nominator. The guarantee of one leader does not depend on the Nominator. If it is
	// nil, there is no nominee.
	Nominator driver.Nominator
	// NomineeOnly lets this candidate claim only while it is the nominee, however long nobody
	// leads.
	NomineeOnly bool

	// Lease is how long a leader may be silent, by another candidate's clock, before that candidate
	// takes over.
	Lease time.Duration
	// StopWithin is how long the work may take to stop after the hard context ended. It is taken
	// from the lease: the term ends earlier by this time, and no other candidate leads until the
	// time has passed.
	StopWithin time.Duration
	// FinishWithin is how long the work may take to finish after it was asked to. The lease is
	// renewed during this time. If the work has not finished by then, the term ends with
	// ErrOverdue.
	FinishWithin time.Duration

	// Clock is the source of time. In tests in virtual time (testing/synctest) set it to
	// clock.Standard{}.
	Clock clock.Clock
	// Logger logs each kind of event (see OnEvent about dropped ones): alarm, overdue and failed as
	// errors, trouble, lost and waits without an end as warnings, the others as information. The
	// message is "tenure: " and the kind, or "tenure: nobody leads"; the attributes are election
	// and id, and term, leader, cause and until where they apply. Trouble, alarms and waits with
	// the same lasting cause are logged again after 10 s, 20 s, 40 s and so on up to 1 h, with
	// "times": the number of events since the last line. The elections of a Group share these
	// intervals and counts.
	Logger *slog.Logger
	// OnEvent is called for each event of one election, in order, one at a time. Calls for
	// different elections may be concurrent. A slow OnEvent or Logger never delays a renewal. One
	// goroutine calls both, so a slow OnEvent delays the Logger, and a slow Logger delays OnEvent.
	// Both delay the return of Run, and the value on the channel of Join, by up to 1 s. Each
	// election queues up to 1,024 events. Beyond that the oldest is dropped, also for the log, and
	// Event.Missed counts it.
	OnEvent func(Event)
	// Metrics collects metrics of this election from the call of New until the Election is
	// garbage-collected. Give one Set to all elections of a process on one store. See package
	// metrics.
	Metrics *metrics.Set

	// Tuning holds the settings that most programs leave at their defaults.
	Tuning Tuning
}

// Margin returns the part of a lease that its holder does not use. Because of it the term ends, on
// the holder's own clock, before any other candidate can have waited for the whole lease. It is the
// sum of StopWithin, Tuning.TimerLateness, and Lease * 2r/(1+r), where r is Tuning.Drift. The last
// part allows for clocks that run at different rates. For unset fields Margin uses the defaults.
// Use it only with a Config that New accepts.
func (c Config) Margin() time.Duration {
	c = c.withDefaults()
	return protocol.Margin(c.Lease, c.Tuning.Drift, c.Tuning.TimerLateness, c.StopWithin)
}

// WorstFailover returns the longest time from a leader's last renewal until another candidate
// claims leadership, if the leader dies and the store answers at once. If the store itself pushes
// each change, the result is the lease. Otherwise, and always with a store of package peer, a nil
// store or Tuning.NoWatch, the longest time between two reads is added:
//
//	pushed:  Lease
//	polled:  Lease + min(1.1 * Tuning.PollStable, Lease)
//
// The result is by the clock of the member that claims. In true time it is longer:
//
//   - That clock may run slower: divide the result by 1 - Drift.
//   - A time daemon that slews that clock adds at most 9 % of the divided result.
//   - The store takes time to answer: add twice its latency, and the lateness of timers.
//   - Where there is a Nominator and no nominee claims, add Precedence.
//
// If the store is polled, a failover takes half a PollStable less on average, and with many
// candidates the first of them claims far sooner. For unset fields WorstFailover uses the defaults.
// Use it only with a Config that New accepts and that all members have.
//
// After a release there is no lease to wait for. A successor claims at once if changes are pushed,
// and otherwise after its next read, which comes within min(1.1 * Tuning.PollStable, Lease).
func (c Config) WorstFailover(store driver.Store) time.Duration {
	c = c.withDefaults()
	if driver.AbilitiesOf(store).Pushes() && !c.Tuning.NoWatch {
		return c.Lease
	}
	gap := max(c.Tuning.PollStable, c.Tuning.Poll)
	return c.Lease + min(gap+gap/10, c.Lease)
}

// None means zero where the zero value of a field selects a default: in Tuning.Precedence,
// Tuning.Drift and Tuning.TimerLateness. In Config.FinishWithin it means 1 ms.
const None = -1

// Tuning holds the settings of a Config that few programs need. Measure before you change them: the
// defaults follow Config.Lease, so a shorter lease alone makes everything faster. The zero value of
// each field selects its default:
//
//	field          default                      limits
//	Renew          Lease / 3                    1 ms to Lease - Margin - 2 ms
//	Precedence     Lease                        at most 1 h; may be None
//	Grace          none                         less than Lease - Margin
//	Splay          none                         at most 1 h
//	Poll           Renew                        1 ms to 1 h
//	PollStable     Lease, or Poll if longer     Poll to 1 h
//	NoWatch        false
//	Retry          0, 100 ms, 1 s               at most 10, each from 0 to Renew
//	Backoff        Lease * 2^(n-1), at most 10 * Lease
//	Drift          the clock's: 0.01 on Linux,  below 0.5; may be None
//	               0.1 elsewhere
//	TimerLateness  Lease / 50, 25 to 100 ms     part of the lease, see Margin; may be None
type Tuning struct {
	// Renew is the time from the send of one renewal to that of the next.
	Renew time.Duration
	// Precedence is the extra time that any other candidate waits for a nominee to claim. It has no
	// effect without a Nominator.
	Precedence time.Duration
	// Grace is how long a new leader holds the lease before its work starts.
	Grace time.Duration
	// Splay is the maximum random delay before the first claim. It spreads processes that start
	// together.
	Splay time.Duration

	// Poll is the time between reads of a store that does not push changes, while no leader is
	// known to renew: in transitions and in trouble. Each interval is drawn at random from 90 to
	// 110 % of it.
	Poll time.Duration
	// PollStable is the same while a leader is seen to renew. Values longer than Lease act like
	// Lease: the store is always read when the lease of a silent leader would be over.
	// Config.WorstFailover shows how it lengthens a failover.
	PollStable time.Duration
	// NoWatch makes the election follow by reads alone, even if the store can push changes.
	NoWatch bool

	// Retry lists the waits after the first, the second, ... consecutive failed store call. After
	// the listed ones, a follower waits Renew each time, and a leader a quarter of Renew. A leader
	// must renew before its deadline, so it also shortens listed waits to half of Renew. Nil
	// selects 0, 100 ms (at most a quarter of Renew) and 1 s (at most half of it). An empty slice
	// that is not nil lists no waits.
	Retry []time.Duration
	// Backoff returns the delay before the next campaign when leadership was declined n times in a
	// row, n from 1. A negative delay counts as 0.
	Backoff func(n int) time.Duration

	// Drift is the bound r on the error of this machine's clock rates: local seconds per true
	// second lie in [1-r, 1+r]. Members may have different bounds. The record states the bound of
	// the leader, and a member with a larger bound waits longer for the leader's lease to end.
	Drift float64
	// TimerLateness is how late a timer may fire on this machine. The term ends earlier by this
	// time, which protects work that relies on the contexts.
	TimerLateness time.Duration
}

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = defaultID()
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	orDefault(&c.Lease, record.DefaultLease)
	orDefault(&c.StopWithin, 0)
	orDefault(&c.FinishWithin, 10*time.Second)
	c.FinishWithin = max(c.FinishWithin, time.Millisecond)
	c.Tuning.setDefaults(c.Lease, c.Clock)
	return c.clone()
}

// clone shares nothing with c that either of them may change.
func (c Config) clone() Config {
	c.Metadata, c.Tuning.Retry = maps.Clone(c.Metadata), slices.Clone(c.Tuning.Retry)
	return c
}

func (t *Tuning) setDefaults(lease time.Duration, c clock.Clock) {
	orDefault(&t.Drift, c.Drift())
	orDefault(&t.Renew, lease/3)
	orDefault(&t.Precedence, lease)
	orDefault(&t.Grace, 0)
	orDefault(&t.Splay, 0)
	orDefault(&t.Poll, t.Renew)
	orDefault(&t.PollStable, max(lease, t.Poll))
	orDefault(&t.TimerLateness, protocol.TimerLateness(lease))
	if t.Retry == nil {
		t.Retry = []time.Duration{0, min(100*time.Millisecond, t.Renew/4), min(time.Second, t.Renew/2)}
	}
	if t.Backoff == nil {
		t.Backoff = doubling(lease)
	}
}

// orDefault replaces 0 by the default, and None by 0.
func orDefault[T time.Duration | float64](value *T, def T) {
	switch *value {
	case 0:
		*value = def
	case None:
		*value = 0
	}
}

// defaultID returns the same text throughout this process.
func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%.200s_%d_%s", host, os.Getpid(), random)
}

// random distinguishes processes that have one host name and one process id: in a container the
// process id is often 1.
var random = strings.ToLower(rand.Text()[:5])

// doubling returns a Backoff of one lease, then two, four, eight, and always ten after that.
func doubling(lease time.Duration) func(int) time.Duration {
	return func(n int) time.Duration {
		return lease * time.Duration(min(1<<min(n-1, 10), 10))
	}
}
