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

// offered is an election with a leader a, candidates b and c, and an operator who takes no part.
type offered struct {
	store    operated
	a, b, c  *running
	term     *tenure.Term
	operator *tenure.Election
}

func offers(t *testing.T, test func(t *testing.T, o *offered)) {
	bubbles(t, func(t *testing.T, store operated) {
		o := &offered{store: store, operator: mustNew(t, store, "operator", nil)}
		o.a, o.term = elect(t, store, "a", nil)
		o.b, o.c = start(t, mustNew(t, store, "b", nil), holdOn), start(t, mustNew(t, store, "c", nil), holdOn)
		time.Sleep(2 * lease)
		test(t, o)
	})
}

// unmoved checks that a has led all the time, and that its record holds no request.
func (o *offered) unmoved(t *testing.T) {
	t.Helper()
	if o.term.Err() != nil || o.term.Soft().Err() != nil || len(o.b.won)+len(o.c.won) > 0 {
		t.Errorf("a leads no more: %v, %v", o.term.Err(), context.Cause(o.term.Soft()))
	}
	if e, _ := o.store.Read(t.Context(), key); bytes.Contains(e.Value, []byte(`"request"`)) {
		t.Errorf("the store holds %s", e.Value)
	}
}

// A name that nobody has does not empty the seat.
func TestHandOverToNobodyChangesNothing(t *testing.T) {
	for who, asks := range map[string]func(*offered) *tenure.Election{
		"the leader":  func(o *offered) *tenure.Election { return o.a.election },
		"a candidate": func(o *offered) *tenure.Election { return o.b.election },
		"an operator": func(o *offered) *tenure.Election { return o.operator },
	} {
		t.Run(who, func(t *testing.T) {
			offers(t, func(t *testing.T, o *offered) {
				handOver(t, asks(o), "bb")
				time.Sleep(3 * lease) // two leases from when the leader saw it, and a renewal
				o.unmoved(t)
			})
		})
	}
}

func TestHandOverToAnIneligibleCandidateChangesNothing(t *testing.T) {
	offers(t, func(t *testing.T, o *offered) {
		o.b.election.SetEligible(false)
		handOver(t, o.operator, "b")
		time.Sleep(3 * lease)
		o.unmoved(t)
		o.b.election.SetEligible(true)
		time.Sleep(3 * lease)
		o.unmoved(t) // the offer was void
	})
}

// The leader names the operator, not the candidate that has accepted.
func TestAcceptedOfferMovesTheLeadership(t *testing.T) {
	offers(t, func(t *testing.T, o *offered) {
		handOver(t, o.operator, "c")
		within(t, 2*lease, o.c.won, "term of c") // it reads once in a lease
		if why := context.Cause(o.term.Soft()); !errors.Is(why, tenure.ErrHandOver) || !strings.Contains(why.Error(), "operator") {
			t.Errorf("a left because of %v", why)
		}
	})
}

// A mistyped name can be corrected at once.
func TestOfferIsReplacedByALaterRequest(t *testing.T) {
	for name, later := range map[string]func(*tenure.Election, context.Context, string) error{
		"another offer": (*tenure.Election).HandOver, "by force": (*tenure.Election).ForceHandOver,
	} {
		t.Run(name, func(t *testing.T) {
			offers(t, func(t *testing.T, o *offered) {
				handOver(t, o.operator, "bb")
				if err := later(o.operator, t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
				within(t, 2*lease, o.b.won, "term of b")
			})
		})
	}
}

func TestForceHandOverNeedsNoAcceptance(t *testing.T) {
	offers(t, func(t *testing.T, o *offered) {
		if err := o.operator.ForceHandOver(t.Context(), "bb"); err != nil {
			t.Fatal(err)
		}
		<-o.term.Soft().Done()
		if why := context.Cause(o.term.Soft()); !errors.Is(why, tenure.ErrHandOver) {
			t.Errorf("a left because of %v", why)
		}
	})
}

// A candidate with precedence does not overwrite the operator's wish.
func TestPriorityWaitsForAnOffer(t *testing.T) {
	offers(t, func(t *testing.T, o *offered) {
		first := start(t, mustNew(t, o.store, "first", func(c *tenure.Config) { c.Priority = 1 }), holdOn)
		time.Sleep(2*lease - 2*time.Second) // it will soon ask
		handOver(t, o.operator, "bb")
		time.Sleep(lease)
		if o.term.Soft().Err() != nil {
			t.Errorf("a leaves because of %v", context.Cause(o.term.Soft()))
		}
		within(t, 14*lease, first.won, "term of the first") // it asks once in ten leases
	})
}

// lateWriter cannot write while the record has an offer.
type lateWriter struct{ operated }

func (s lateWriter) CompareAndSwap(ctx context.Context, k string, prev driver.Version, value []byte) (driver.Version, error) {
	if e, _ := s.Read(ctx, k); bytes.Contains(e.Value, []byte(`"offer":true`)) {
		return "", errors.New("no answer")
	}
	return s.operated.CompareAndSwap(ctx, k, prev, value)
}

// A candidate that accepts too late finds the offer gone, and asks for nothing.
func TestVoidOfferIsNotAccepted(t *testing.T) {
	offers(t, func(t *testing.T, o *offered) {
		start(t, mustNew(t, lateWriter{o.store}, "late", nil), holdOn)
		time.Sleep(2 * lease)
		handOver(t, o.operator, "late")
		time.Sleep(4 * lease)
		o.unmoved(t)
	})
}

// A process that is stopped between its read and its write must not write over that version: the
// store may have begun its history again during the stop.
func TestNoRequestIsMadeAfterAPause(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
		written := make(map[string]int)
		stops := 1
		stopped := between{store, func() {
			e, _ := store.Read(t.Context(), key)
			written[string(e.Version)]++
			if stops > 0 {
				stops--
				time.Sleep(lease / 2)
			}
		}}
		if err := mustNew(t, stopped, "operator", nil).HandOver(t.Context(), ""); err != nil {
			t.Errorf("HandOver returned %v", err)
		}
		if len(written) != 2 {
			t.Errorf("it has read %d states, and is to read again after a pause", len(written))
		}
	})
}
