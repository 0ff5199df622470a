package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
)

// termOf returns the term of a context, or nil.
func termOf(ctx context.Context) *tenure.Term {
	term, _ := tenure.FromContext(ctx)
	return term
}

// FromContext returns nil for a context that belongs to no term. Work that uses that nil term must
// learn that it may not act.
func TestNilTermIsOver(t *testing.T) {
	term, ok := tenure.FromContext(t.Context())
	if term != nil || ok {
		t.Fatal("a term out of nothing")
	}
	called := false
	for method, err := range map[string]error{
		"Err":     term.Err(),
		"Do":      term.Do(t.Context(), 0, func(context.Context) error { called = true; return nil }),
		"Resign":  term.Resign(t.Context()),
		"Context": context.Cause(term.Context()),
		"Soft":    context.Cause(term.Soft()),
	} {
		if !errors.Is(err, tenure.ErrLost) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if called {
		t.Error("Do calls its function")
	}
	if term.Token() != 0 || term.Election() != "" || term.Remaining() != 0 {
		t.Errorf("token %d of %q, %v remaining", term.Token(), term.Election(), term.Remaining())
	}
	select {
	case <-term.Renewed():
	default:
		t.Error("Renewed never returns a closed channel")
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRenewedSignalsEachRenewalAndNothingElse(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		_, term := elect(t, store, "a", nil)
		time.Sleep(time.Millisecond)
		for range 5 {
			renewed, before := term.Renewed(), term.Remaining()
			time.Sleep(lease/3 - 2*time.Millisecond)
			synctest.Wait()
			if closed(renewed) {
				t.Fatal("Renewed was closed before a renewal")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if !closed(renewed) || term.Remaining() < before-2*time.Millisecond {
				t.Fatalf("Renewed was not closed by a renewal: %v were left, and now %v", before, term.Remaining())
			}
		}
	})
}

// However a term ends, a pending wait ends at that moment. A later wait does not block.
func TestRenewedSignalsTheEnd(t *testing.T) {
	ends := map[string]func(a *running, f faults.Store, store operated){
		"lost":    func(_ *running, f faults.Store, _ operated) { f.Partition() },
		"deposed": func(_ *running, _ faults.Store, store operated) { store.Put(key, []byte("not ours")) },
		"leaving": func(a *running, _ faults.Store, _ operated) { a.stop() },
		"overdue": func(a *running, _ faults.Store, _ operated) { a.election.SetEligible(false) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				f := faulty(t, store)
				a := start(t, mustNew(t, f, "a", func(c *tenure.Config) { c.FinishWithin = 9 * time.Second }), func(ctx context.Context, term *tenure.Term) error {
					<-ctx.Done()
					if name == "overdue" {
						<-term.Context().Done()
					}
					return nil
				})
				term := within(t, lease, a.won, "term of a")
				time.Sleep(lease)
				end(a, f, store)
				ended, over := watchEnd(term)
				within(t, 2*lease, ended, "the end")
				if at := <-over; time.Since(at) > 0 {
					t.Errorf("Renewed was closed %v after the end", time.Since(at))
				}
				if !closed(term.Renewed()) {
					t.Error("there is something to wait for after the end")
				}
				f.Heal()
			})
		})
	}
}

// watchEnd waits for the end of a term with only Renewed. It also records when the term's context
// ended.
func watchEnd(term *tenure.Term) (ended chan struct{}, over chan time.Time) {
	ended, over = make(chan struct{}), make(chan time.Time, 1)
	context.AfterFunc(term.Context(), func() { over <- time.Now() })
	go func() {
		defer close(ended)
		for renewed := term.Renewed(); term.Err() == nil; renewed = term.Renewed() {
			<-renewed
		}
	}()
	return ended, over
}

// A guard keeps an exact copy of the deadline: through renewals, lost answers, and a lease that
// gets shorter and longer.
func TestRenewedKeepsACopyOfTheDeadlineExact(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{MinDelay: 2 * time.Second, MaxDelay: 2 * time.Second})
		a, term := elect(t, f, "a", nil)
		deadline := mirror(term)
		synctest.Wait()
		compare := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				synctest.Wait()
				if mine, real := time.Until(*deadline), term.Remaining(); mine != real {
					t.Fatalf("%v remain, but the copy shows %v", real, mine)
				}
			}
		}
		compare(lease)
		f.Next(faults.Write, faults.LoseAnswer, faults.DelayAfter, faults.LoseRequest)
		compare(2 * lease)
		reconfigure(t, a.election, func(c *tenure.Config) { c.Lease = lease / 3 })
		f.Next(faults.Write, faults.DelayAfter)
		compare(lease)
		reconfigure(t, a.election, func(c *tenure.Config) { c.Lease = 2 * lease })
		f.Next(faults.Write, faults.DelayBefore)
		compare(2 * lease)
		if err := term.Err(); err != nil {
			t.Errorf("the term was lost: %v", err)
		}
		_ = a.end(t)
		f.Wait()
	})
}

// mirror keeps a copy of the deadline of a term and updates it only when Renewed is closed. Read it
// while all other goroutines are blocked.
func mirror(term *tenure.Term) *time.Time {
	deadline := new(time.Time)
	go func() {
		for {
			renewed, left := term.Renewed(), term.Remaining()
			*deadline = time.Now().Add(left)
			if left == 0 {
				return
			}
			<-renewed
		}
	}()
	return deadline
}

// The shorter promise counts from when it is sent, whatever the outcome of the write. Renewed is
// closed at that moment.
func TestRenewedSignalsAShorterLeaseWhenItIsSent(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{MinDelay: time.Second, MaxDelay: time.Second})
		a, term := elect(t, f, "a", nil)
		synctest.Wait()
		renewed := term.Renewed()
		reconfigure(t, a.election, func(c *tenure.Config) { c.Lease = 6 * time.Second })
		synctest.Wait()
		if closed(renewed) {
			t.Error("Renewed was closed before the shorter lease was sent")
		}
		f.Next(faults.Write, faults.DelayBefore)
		// A third of the new lease. The answer comes a second later.
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if left := term.Remaining(); !closed(renewed) || left > 6*time.Second {
			t.Errorf("closed: %v; %v are left", closed(renewed), left)
		}
		_ = a.end(t)
		f.Wait()
	})
}
