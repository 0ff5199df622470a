package tenure_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

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
