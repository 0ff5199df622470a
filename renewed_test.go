package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRenewedTellsOfEachRenewalAndOfNothingBetween(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		a := start(t, mustNew(t, store, "a", nil), holdOn)
		term := within(t, lease, a.won, "term of a")
		time.Sleep(time.Millisecond)
		for range 5 {
			renewed, before := term.Renewed(), term.Remaining()
			time.Sleep(lease/3 - 2*time.Millisecond)
			synctest.Wait()
			if closed(renewed) {
				t.Fatal("told of a renewal before there was one")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if !closed(renewed) || term.Remaining() < before-2*time.Millisecond {
				t.Fatalf("not told of a renewal: %v were left, and now %v", before, term.Remaining())
			}
		}
		_ = a.end(t)
	})
}

// However a term ends those who wait are told at the end, and those who ask afterwards do not wait
// at all.
func TestRenewedTellsOfTheEnd(t *testing.T) {
	ends := map[string]func(a *running, f faults.Store, store operated){
		"lost":    func(_ *running, f faults.Store, _ operated) { f.Partition() },
		"deposed": func(_ *running, _ faults.Store, store operated) { store.Put(key, []byte("not ours")) },
		"leaving": func(a *running, _ faults.Store, _ operated) { a.stop() },
		"overdue": func(a *running, _ faults.Store, _ operated) { a.election.SetEligible(false) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubbles(t, func(t *testing.T, store operated) {
				f := faults.New(store, 1, faults.Plan{})
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
				told, over := toldOfTheEnd(term)
				within(t, 2*lease, told, "the end")
				if ended := <-over; time.Since(ended) > 0 {
					t.Errorf("told %v after the end", time.Since(ended))
				}
				if !closed(term.Renewed()) {
					t.Error("there is something to wait for after the end")
				}
				f.Heal()
				_ = a.end(t)
				f.Wait()
			})
		})
	}
}

// toldOfTheEnd waits for the end of a term by Renewed alone, and notes when the term's context
// ended.
func toldOfTheEnd(term *tenure.Term) (told chan struct{}, over chan time.Time) {
	told, over = make(chan struct{}), make(chan time.Time, 1)
	context.AfterFunc(term.Context(), func() { over <- time.Now() })
	go func() {
		defer close(told)
		for renewed := term.Renewed(); term.Err() == nil; renewed = term.Renewed() {
			<-renewed
		}
	}()
	return told, over
}

// A guard that holds the deadline for somebody else knows it at every moment: through renewals,
// lost answers, and a lease that is made shorter and longer.
func TestRenewedKeepsAMirrorOfTheDeadline(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{MinDelay: 2 * time.Second, MaxDelay: 2 * time.Second})
		a := start(t, mustNew(t, f, "a", nil), holdOn)
		term := within(t, lease, a.won, "term of a")
		deadline := mirror(term)
		synctest.Wait()
		compare := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				synctest.Wait()
				if mine, real := time.Until(*deadline), term.Remaining(); mine != real {
					t.Fatalf("%v remain, and who is told of changes believes in %v", real, mine)
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

// mirror keeps the deadline of a term as somebody else would, who is told of changes alone. It is
// read when all others rest.
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

// The shorter promise counts from when it is sent, whatever becomes of it, and that is when one is
// told.
func TestRenewedTellsOfAShorterLeaseAsSoonAsItIsSent(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		f := faults.New(store, 1, faults.Plan{MinDelay: time.Second, MaxDelay: time.Second})
		a := start(t, mustNew(t, f, "a", nil), holdOn)
		term := within(t, lease, a.won, "term of a")
		synctest.Wait()
		renewed := term.Renewed()
		reconfigure(t, a.election, func(c *tenure.Config) { c.Lease = 6 * time.Second })
		synctest.Wait()
		if closed(renewed) {
			t.Error("told of a shorter lease before it was sent")
		}
		f.Next(faults.Write, faults.DelayBefore)
		// a third of the new lease; the answer comes a second later
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if left := term.Remaining(); !closed(renewed) || left > 6*time.Second {
			t.Errorf("told: %v; %v are left", closed(renewed), left)
		}
		_ = a.end(t)
		f.Wait()
	})
}
