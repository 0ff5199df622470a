package tenure

import (
	"crypto/rand"
	"fmt"
	"io"
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
	"github.com/tenure-go/tenure/nomination"
)

var _ = [1]int{}[driver.MaxLease-record.MaxLease] // they are equal, or this does not compile

// Config holds the settings of one candidate in an election. The zero value of each field selects
// its default:
//
//	field         default                 limits
//	ID            host, process, random   256 bytes
//	Address       none                    256 bytes
//	Metadata      none                    1 KiB of keys and values in all
//	Priority      0                       -1,000,000 to 1,000,000; 0 with a Nominator
//	Nomination    none                    see package nomination
//	Lease         15 s                    whole ms; 1 ms to 1 h, or the store's narrower limits
//	StopWithin    none                    part of the lease, see timing.Margin
//	FinishWithin  10 s                    1 ms to 24 h; negative: 1 ms
//	Clock         clock.Default()
//	Logger        discards
//	OnEvent       none
//	Metrics       none
//	Trace         none
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
	// same time. The default is the host name, the process id and five random letters or digits,
	// such as node-1_4711_k3wqa; it stays the same as long as the process lives.
	ID string
	// Address is published in the record while this candidate leads, for clients of the leader.
	Address string
	// Metadata is published in the same way. New keeps a copy.
	Metadata map[string]string

	// Priority makes a candidate with a higher value take over from a leader with a lower one. The
	// candidate asks the leader to hand over, at most once in ten leases, and not before it has
	// been eligible and campaigned for two leases without a failed store call. Priority does not
	// order candidates while nobody leads.
	Priority int
	// Nomination lets a system outside of the election decide which candidate has precedence, in
	// place of Priority. The guarantee of one leader does not depend on it. The zero value
	// nominates none. See package nomination.
	Nomination nomination.Config

	// Lease is how long a leader may be silent, by another candidate's clock, before that candidate
	// takes over.
	Lease time.Duration
	// StopWithin is how long the work may take to stop after Term.LeaseContext ended. It is taken
	// from the lease: the term ends earlier by this time, and no other candidate leads until the
	// time has passed.
	StopWithin time.Duration
	// FinishWithin is how long the work may take to finish after it was asked to. The lease is
	// renewed during this time, and Term.LeaseContext stays open. If the work has not finished by
	// then, the term ends with ErrOverdue. Raise it if jobs that have begun take longer.
	FinishWithin time.Duration

	// Clock is the source of time. The default also serves tests in virtual time
	// (testing/synctest).
	Clock clock.Clock
	// Logger logs each event, at the level that the constants of EventKind state (see OnEvent about
	// dropped ones). The message is "tenure: " and the kind, or "tenure: nobody leads"; the
	// attributes are election and id, and term, leader, cause, reason and until where they apply.
	// Trouble, alarms and waits with the same lasting cause are logged again after 10 s, 20 s, 40 s
	// and so on up to 1 h, with "times": the number of events since the last line. The elections of
	// a Group share these intervals and counts.
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
	// Trace receives each input of this election and each decision, as lines of JSON, for a report
	// of a bug: docs/trace.md describes them. Each Write gets whole lines. A goroutine calls it,
	// which ends when no line waits, so a slow Write delays nothing. The trace ends at the first
	// error of Write, and when more than 4 MiB wait. Elections that share it may call it at the
	// same time. The lines hold no secrets of the store beyond those in the texts of its errors.
	Trace io.Writer

	// Tuning holds the settings that most programs leave at their defaults.
	Tuning Tuning
}

// Tuning holds the settings of a Config that few programs need. Measure before you change them: the
// defaults follow Config.Lease, so a shorter lease alone makes everything faster. The zero value of
// each field selects its default:
//
//	field          default                      limits
//	Renew          Lease / 3                    1 ms to Lease - margin - 2 ms, see timing.Margin
//	Grace          none                         less than Lease - margin
//	Splay          none                         at most 1 h
//	Poll           Renew                        1 ms to 1 h
//	PollStable     Lease, or Poll if longer     Poll to 1 h
//	NoWatch        false
//	Retry          0, 100 ms, 1 s               at most 10, each from 0 to Renew
//	Backoff        Lease * 2^(n-1), at most
//	               10 * Lease
//	Drift          the clock's: 0.01 on Linux,  below 0.5; negative: none
//	               0.1 elsewhere
//	TimerLateness  Lease / 50, 25 to 100 ms     part of the lease; negative: none
type Tuning struct {
	// Renew is the time from the send of one renewal to that of the next.
	Renew time.Duration
	// Grace is how long a new leader holds the lease before its work starts.
	Grace time.Duration
	// Splay is the maximum random delay before the first claim. It spreads processes that start
	// together.
	Splay time.Duration

	// Poll is the time between reads of a store that does not push changes, while no leader is
	// known to renew: in transitions and in trouble. Each interval is drawn at random from 90 to
	// 110 % of it.
	Poll time.Duration
	// PollStable is the same while a leader is seen to renew, and no hand-over is asked for. Values
	// longer than Lease act like Lease: the store is always read when the lease of a silent leader
	// would be over. Package timing says how it lengthens a failover.
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

// WithDefaults returns the settings with the default of each unset field, and 0 for a negative
// value that means none. It is to be shown or computed with, and not for New, where 0 is the
// default. The result shares nothing with c that either of them may change.
func (c Config) WithDefaults() Config {
	if c.ID == "" {
		c.ID = defaultID()
	}
	if c.Clock == nil {
		c.Clock = clock.Default()
	}
	orDefault(&c.Lease, record.DefaultLease)
	orDefault(&c.StopWithin, 0)
	orDefault(&c.FinishWithin, 10*time.Second)
	c.FinishWithin = max(c.FinishWithin, time.Millisecond)
	orDefault(&c.Nomination.Precedence, c.Lease)
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

// orDefault replaces 0 by the default, and a negative value, which means none where it is allowed,
// by 0.
func orDefault[T time.Duration | float64](value *T, def T) {
	if *value == 0 {
		*value = def
	}
	*value = max(*value, 0)
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
