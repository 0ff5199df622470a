package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/timing"
)

// FromContext returns nil for a context that belongs to no term. Work that uses that nil term must
// learn that it may not act.
func TestNilTermIsOver(t *testing.T) {
	term, ok := tenure.FromContext(t.Context())
	if term != nil || ok {
		t.Fatal("a term out of nothing")
	}
	called := false
	for method, err := range map[string]error{
		"Err":          term.Err(),
		"Do":           term.Do(t.Context(), 0, func(context.Context) error { called = true; return nil }),
		"Resign":       term.Resign(t.Context()),
		"LeaseContext": context.Cause(term.LeaseContext()),
		"Context":      context.Cause(term.Context()),
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
	case <-timing.Renewed(term):
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

func TestRenewed(t *testing.T) {
	scenes{
		"it signals each renewal and nothing else": func(s *scene) {
			_, term := s.elect("a")
			time.Sleep(time.Millisecond)
			for range 5 {
				renewed, before := timing.Renewed(term), term.Remaining()
				time.Sleep(lease/3 - 2*time.Millisecond)
				synctest.Wait()
				if closed(renewed) {
					s.Fatal("Renewed was closed before a renewal")
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if !closed(renewed) || term.Remaining() < before-2*time.Millisecond {
					s.Fatalf("Renewed was not closed by a renewal: %v were left, and now %v", before, term.Remaining())
				}
			}
		},
		// A guard keeps an exact copy of the deadline: through renewals, lost answers, and a lease
		// that gets shorter and longer.
		"it keeps a copy of the deadline exact": func(s *scene) {
			f, far := s.faulty(faults.Plan{MinDelay: 2 * time.Second, MaxDelay: 2 * time.Second})
			a, term := far.elect("a")
			deadline := mirror(term)
			synctest.Wait()
			compare := func(d time.Duration) {
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					synctest.Wait()
					if mine, real := time.Until(*deadline), term.Remaining(); mine != real {
						s.Fatalf("%v remain, but the copy shows %v", real, mine)
					}
				}
			}
			compare(lease)
			f.Next(faults.Write, faults.LoseAnswer, faults.DelayAfter, faults.LoseRequest)
			compare(2 * lease)
			a.reconfigure(leaseOf(lease / 3))
			f.Next(faults.Write, faults.DelayAfter)
			compare(lease)
			a.reconfigure(leaseOf(2 * lease))
			f.Next(faults.Write, faults.DelayBefore)
			compare(2 * lease)
			s.holds(term)
		},
		// The shorter promise counts from when it is sent, whatever the outcome of the write.
		// Renewed is closed at that moment.
		"it signals a shorter lease when it is sent": func(s *scene) {
			f, far := s.faulty(faults.Plan{MinDelay: time.Second, MaxDelay: time.Second})
			a, term := far.elect("a")
			synctest.Wait()
			renewed := timing.Renewed(term)
			a.reconfigure(leaseOf(6 * time.Second))
			synctest.Wait()
			if closed(renewed) {
				s.Error("Renewed was closed before the shorter lease was sent")
			}
			f.Next(faults.Write, faults.DelayBefore)
			// A third of the new lease. The answer comes a second later.
			time.Sleep(2*time.Second + time.Millisecond)
			synctest.Wait()
			if left := term.Remaining(); !closed(renewed) || left > 6*time.Second {
				s.Errorf("closed: %v; %v are left", closed(renewed), left)
			}
		},
	}.play(t)
}

// However a term ends, a pending wait ends at that moment. A later wait does not block.
func TestRenewedSignalsTheEnd(t *testing.T) {
	all := scenes{}
	for name, end := range map[string]func(a *process, f faults.Store){
		"lost":    func(_ *process, f faults.Store) { f.Partition() },
		"deposed": func(a *process, _ faults.Store) { a.s.put("not ours") },
		"leaving": func(a *process, _ faults.Store) { a.stop() },
		"overdue": func(a *process, _ faults.Store) { a.SetEligible(false) },
	} {
		all[name] = func(s *scene) {
			f, far := s.faulty()
			a := far.new("a", finishWithin(9*time.Second)).start(func(ctx context.Context, term *tenure.Term) error {
				<-ctx.Done()
				if name == "overdue" {
					<-term.LeaseContext().Done()
				}
				return nil
			})
			term := a.leads(lease)
			time.Sleep(lease)
			end(a, f)
			ended, over := watchEnd(term)
			within(s.T, 2*lease, ended, "the end")
			if at := <-over; time.Since(at) > 0 {
				s.Errorf("Renewed was closed %v after the end", time.Since(at))
			}
			if !closed(timing.Renewed(term)) {
				s.Error("there is something to wait for after the end")
			}
		}
	}
	all.play(t)
}

// watchEnd waits for the end of a term with only Renewed. It also records when the term's context
// ended.
func watchEnd(term *tenure.Term) (ended chan struct{}, over chan time.Time) {
	ended, over = make(chan struct{}), make(chan time.Time, 1)
	context.AfterFunc(term.LeaseContext(), func() { over <- time.Now() })
	go func() {
		defer close(ended)
		for renewed := timing.Renewed(term); term.Err() == nil; renewed = timing.Renewed(term) {
			<-renewed
		}
	}()
	return ended, over
}

// mirror keeps a copy of the deadline of a term and updates it only when Renewed is closed. Read it
// while all other goroutines are blocked.
func mirror(term *tenure.Term) *time.Time {
	deadline := new(time.Time)
	go func() {
		for {
			renewed, left := timing.Renewed(term), term.Remaining()
			*deadline = time.Now().Add(left)
			if left == 0 {
				return
			}
			<-renewed
		}
	}()
	return deadline
}
