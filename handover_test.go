package tenure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// A leader that is already leaving accepts the name of a successor, from its own process or through
// the store. The last request counts.
func TestHandOverNamesTheSuccessorOfALeavingLeader(t *testing.T) {
	leave := map[string]func(*running){
		"shut down":    func(a *running) { a.stop() },
		"not eligible": func(a *running) { a.election.SetEligible(false) },
	}
	wish := map[string]func(a, b *running) *tenure.Election{
		"by itself": func(a, _ *running) *tenure.Election { return a.election },
		"from afar": func(_, b *running) *tenure.Election { return b.election },
	}
	for why, leave := range leave {
		for who, asks := range wish {
			t.Run(why+", "+who, func(t *testing.T) {
				bubbles(t, func(t *testing.T, store operated) { namedWhileLeaving(t, store, leave, asks) })
			})
		}
	}
}

func namedWhileLeaving(t *testing.T, store operated, leave func(*running), asks func(a, b *running) *tenure.Election) {
	quick := func(c *tenure.Config) { c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second }
	var cause error
	a := start(t, mustNew(t, store, "a", quick), func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		time.Sleep(8 * time.Second) // a renewal shows the request in the store
		return nil
	})
	within(t, lease, a.won, "term of a")
	others := map[string]*running{}
	for _, id := range []string{"b", "c", "d", "e", "f"} {
		others[id] = start(t, mustNew(t, store, id, quick), holdOn)
	}
	time.Sleep(lease)
	leave(a)
	time.Sleep(time.Millisecond)
	handOver(t, asks(a, others["b"]), "d")
	within(t, lease, others["d"].won, "term of d")
	if errors.Is(cause, tenure.ErrHandOver) {
		t.Errorf("the first reason to leave was %v", cause)
	}
	_ = a.end(t)
	for _, r := range others {
		_ = r.end(t)
	}
}

func TestLastHandOverRequestNamesTheSuccessor(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a := start(t, mustNew(t, store, "a", nil), func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			time.Sleep(8 * time.Second)
			return nil
		})
		within(t, lease, a.won, "term of a")
		others := map[string]*running{}
		for _, id := range []string{"b", "c", "d", "e", "f"} {
			others[id] = start(t, mustNew(t, store, id, nil), holdOn)
		}
		time.Sleep(lease)
		a.stop()
		handOver(t, others["b"].election, "d")
		time.Sleep(6 * time.Second) // the leader has received the request
		handOver(t, a.election, "e")
		within(t, 3*lease, others["e"].won, "term of e")
		_ = a.end(t)
		for _, r := range others {
			_ = r.end(t)
		}
	})
}

// If the named candidate already leads, a hand-over would end its term for no reason.
func TestHandOverToTheLeaderChangesNothing(t *testing.T) {
	for who, asks := range map[string]func(a, b *running) *tenure.Election{
		"by itself": func(a, _ *running) *tenure.Election { return a.election },
		"from afar": func(_, b *running) *tenure.Election { return b.election },
	} {
		t.Run(who, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				a, term := elect(t, store, "a", nil)
				b := start(t, mustNew(t, store, "b", nil), holdOn)
				time.Sleep(lease + time.Second) // between two renewals
				before, _ := store.Read(t.Context(), key)
				if err := asks(a, b).HandOver(t.Context(), "a"); err != nil {
					t.Errorf("HandOver returned %v", err)
				}
				if after, _ := store.Read(t.Context(), key); after.Version != before.Version {
					t.Errorf("the store holds %s", after.Value)
				}
				time.Sleep(10 * lease)
				if err := term.Err(); err != nil || term.Soft().Err() != nil {
					t.Errorf("a does not lead any more: %v, %v", err, context.Cause(term.Soft()))
				}
			})
		})
	}
}

// A process that names its own ID means itself, not a leader that has the same ID by mistake.
func TestHandOverToANamesakeOfTheLeader(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		second := start(t, mustNew(t, store, "a", nil), holdOn)
		time.Sleep(lease)
		if err := second.election.HandOver(t.Context(), "a"); err != nil {
			t.Errorf("HandOver returned %v", err)
		}
		within(t, 2*lease, second.won, "term of the second a") // it reads once in about a lease
	})
}

// A candidate with a higher priority also asks for its own process.
func TestPriorityDisplacesANamesake(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		elect(t, store, "a", func(c *tenure.Config) { c.Priority = 1 })
	})
}

func TestHandOverRefusesAMalformedTerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		version := store.Put(key, fmt.Appendf(nil, tooHigh, uint64(lastTerm), 1))
		if err := mustNew(t, store, "b", nil).HandOver(t.Context(), ""); !errors.Is(err, tenure.ErrMalformed) {
			t.Errorf("HandOver returned %v", err)
		}
		if e, _ := store.Read(t.Context(), key); e.Version != version {
			t.Errorf("the store holds %s", e.Value)
		}
	})
}

// suspicious marks one version as unproven, and counts the requests over it.
type suspicious struct {
	*memory.Polled
	marked   driver.Version
	requests int
}

func (s *suspicious) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.Polled.Read(ctx, key)
	e.Unproven = e.Version == s.marked
	return e, err
}

func (s *suspicious) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if prev == s.marked && bytes.Contains(value, []byte(`"request"`)) {
		s.requests++
	}
	return s.Polled.CompareAndSwap(ctx, key, prev, value)
}

// A request would remove the mark, so members that have not seen it would not wait.
func TestHandOverWaitsWhileTheRecordIsUnproven(t *testing.T) {
	for _, c := range []struct {
		name             string
		alive, successor bool
		within           time.Duration
		want             string
	}{
		{"leader renews", true, false, time.Hour, ""},
		{"leader is cut off", false, false, time.Hour, "has not renewed"},
		{"another candidate follows", false, true, time.Hour, "no longer leads"},
		{"caller does not wait", false, false, lease / 3, "has not renewed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &suspicious{Polled: memory.NewPolled(), marked: "none"}
				line := faults.New(store, 1, faults.Plan{})
				elect(t, line, "a", nil)
				if c.successor {
					b := start(t, mustNew(t, store.Polled, "b", func(c *tenure.Config) {
						c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second
					}), holdOn)
					defer func() { _ = b.end(t) }()
					time.Sleep(2*lease + lease/5) // so b's wait is over before the operator's
				}
				e, err := store.Read(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				store.marked = e.Version
				if !c.alive {
					line.Partition()
				}
				operator := mustNew(t, store, "operator", func(c *tenure.Config) {
					// The commands of operators have such settings.
					c.Lease, c.Tuning.Renew = lease/3, 500*time.Millisecond
				})
				ctx, cancel := context.WithTimeout(t.Context(), c.within)
				defer cancel()
				err = operator.HandOver(ctx, "")
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || store.requests > 0 {
					t.Errorf("HandOver returned %v after %d requests over the marked record", err, store.requests)
				}
				if e, err = store.Read(t.Context(), key); err != nil || c.successor && !bytes.Contains(e.Value, []byte(`"leaderID":"b"`)) {
					t.Errorf("then the store holds %s, %v", e.Value, err)
				}
				line.Heal()
			})
		})
	}
}
