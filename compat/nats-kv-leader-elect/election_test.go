package election

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
)

// handle is a bucket with only a known TTL.
type handle struct {
	nats.KeyValue
	ttl time.Duration
	err error
}

func (h handle) Bucket() string                       { return "B" }
func (h handle) Status() (nats.KeyValueStatus, error) { return status{ttl: h.ttl}, h.err }

type status struct {
	nats.KeyValueStatus
	ttl time.Duration
}

func (s status) TTL() time.Duration { return s.ttl }

func TestLeaseComesFromTheTTL(t *testing.T) {
	store := WithStore(natskv.FromLegacyKeyValue(nil))
	for _, c := range []struct {
		why   string
		ttl   time.Duration
		opts  []Option
		lease time.Duration
		err   string
	}{
		{"the shortest TTL there was", 30 * time.Second, nil, 10 * time.Second, ""},
		{"the longest TTL there was", time.Hour, nil, 20 * time.Minute, ""},
		{"the demo's", 31 * time.Second, nil, 10333 * time.Millisecond, ""},
		{"over a store", 30 * time.Second, []Option{store}, 10 * time.Second, ""},
		{"the shortest TTL", 1500 * time.Millisecond, nil, 500 * time.Millisecond, ""},
		{"the longest TTL", 3 * time.Hour, nil, time.Hour, ""},
		{"no TTL", 0, nil, 15 * time.Second, ""},
		{"no TTL and a lease", 0, []Option{WithLease(time.Second)}, time.Second, ""},
		{"a shorter lease", time.Minute, []Option{WithLease(5 * time.Second)}, 5 * time.Second, ""},
		{"a lease for a long TTL", 24 * time.Hour, []Option{WithLease(time.Minute)}, time.Minute, ""},
		{"Configure has the last word", 30 * time.Second, []Option{Configure(func(c *tenure.Config) { c.Lease = 12 * time.Second })}, 12 * time.Second, ""},
		{"and leaves it alone", 30 * time.Second, []Option{Configure(func(c *tenure.Config) { c.Lease = 0 })}, 10 * time.Second, ""},
		{"migrating", time.Hour, []Option{Migrating()}, 20 * time.Minute, ""},
		{"too short a TTL", 1400 * time.Millisecond, nil, 0, "nats kv edit B --ttl 30s"},
		{"too long a TTL", 4 * time.Hour, nil, 0, "WithLease"},
		{"too long a lease for the TTL", 30 * time.Second, []Option{WithLease(11 * time.Second)}, 0, "nats kv edit B --ttl 33s"},
		{"a lease below the store's", 30 * time.Second, []Option{WithLease(100 * time.Millisecond)}, 0, "from 500ms to 1h"},
		{"parts of a millisecond", 30 * time.Second, []Option{WithLease(time.Second + 1)}, 0, "whole milliseconds"},
		{"a negative lease", 30 * time.Second, []Option{WithLease(-time.Second)}, 0, "Lease"},
		{"migrating without a TTL", 0, []Option{Migrating()}, 0, "no TTL"},
		{"migrating with a TTL that the old ones refuse", 2 * time.Hour, []Option{Migrating()}, 0, "at most 1h"},
		{"migrating over a store", time.Minute, []Option{Migrating(), store}, 0, "mixed.Migrating"},
	} {
		t.Run(c.why, func(t *testing.T) {
			e, err := NewElection("a", "k", handle{ttl: c.ttl}, c.opts...)
			if c.err != "" {
				if e != nil || err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "election: bucket B: ") {
					t.Errorf("got %v and %v, not an error with %q", e, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := e.(*Elector).lease; got != c.lease {
				t.Errorf("the lease is %v, not %v", got, c.lease)
			}
		})
	}
}

func TestNewReportsErrors(t *testing.T) {
	unknown := errors.New("no answer")
	if _, err := NewElection("a", "k", handle{err: unknown}); !errors.Is(err, unknown) {
		t.Errorf("a bucket that does not show its TTL: %v", err)
	}
	if _, err := NewElection("a", "k", nil); !errors.Is(err, errNothing) {
		t.Errorf("no bucket: %v", err)
	}
	if _, err := NewElection("a", "no key", handle{ttl: 30 * time.Second}); err == nil || !strings.Contains(err.Error(), `"no key"`) {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := NewElection(strings.Repeat("a", 300), "k", handle{ttl: 30 * time.Second}); err == nil || !strings.Contains(err.Error(), "ID") {
		t.Errorf("a wrong name: %v", err)
	}
	if _, err := NewElection("", "k", handle{ttl: 30 * time.Second}, OnWon(nil), OnLost(nil), OnCampaign(nil), OnError(nil), WithDebug(nil), WithBackoff(nil)); err != nil {
		t.Errorf("no name, and options of nothing: %v", err)
	}
}

// shape has the names and types of nats-kv-leader-elect. It does not compile if one is missing.
type shape struct {
	newElection  func(name string, key string, bucket nats.KeyValue, opts ...Option) (Election, error)
	onWon        func(func()) Option
	onLost       func(func()) Option
	onCampaign   func(func(State)) Option
	withBackoff  func(Backoff) Option
	withoutSplay func() Option
	withDebug    func(func(format string, a ...interface{})) Option
	election     Election
	backoff      interface{ Duration(n int) time.Duration }
	states       []State
}

var _ = shape{
	NewElection, OnWon, OnLost, OnCampaign, WithBackoff, WithoutSplay, WithDebug, fake{}, Backoff(nil),
	[]State{UnknownState: 0, CandidateState: 1, LeaderState: 2},
}

func TestStatesHaveNames(t *testing.T) {
	for s, want := range []string{"unknown", "candidate", "leader", "State(3)"} {
		if got := State(s).String(); got != want { //nolint:gosec // small
			t.Errorf("state %d is %q, not %q", s, got, want)
		}
	}
}

// fake is an Election as a test of a program may have it.
type fake struct{}

func (fake) Start(context.Context) error { return nil }
func (fake) Stop()                       {}
func (fake) IsLeader() bool              { return false }
func (fake) State() State                { return UnknownState }

func TestOnErrorIsForFailuresAlone(t *testing.T) {
	cause := errors.New("cause")
	for kind, want := range map[tenure.EventKind]bool{
		tenure.EventTrouble: true, tenure.EventAlarm: true, tenure.EventLost: true,
		tenure.EventLeaving: false, tenure.EventWaiting: false,
	} {
		if got := isFailure(tenure.Event{Kind: kind, Cause: cause}); got != want {
			t.Errorf("OnError is called for %s: %t, want %t", kind, got, want)
		}
	}
}
