package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// staying is work that stays and is told in finished when it should end; what it then returns is in result.
type staying struct {
	finished chan context.Context
	result   chan error
}

func newStaying() *staying {
	return &staying{finished: make(chan context.Context, 10), result: make(chan error, 10)}
}

func (s *staying) lead(context.Context, *tenure.Term) error {
	return fmt.Errorf("begun: %w", tenure.Stay(func(hard context.Context, _ *tenure.Term) error {
		s.finished <- hard
		return <-s.result
	}))
}

// ways are how an election is run. In either the rows of Run's table are the same, also for work that stays.
func ways(t *testing.T, test func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error)) {
	t.Run("Run", func(t *testing.T) {
		bubbles(t, func(t *testing.T, store operated) {
			test(t, store, func(ctx context.Context, e *tenure.Election, lead tenure.Lead) <-chan error {
				done := make(chan error, 1)
				go func() { done <- e.Run(ctx, lead) }()
				return done
			})
		})
	})
	t.Run("Start", func(t *testing.T) {
		bubbles(t, func(t *testing.T, store operated) {
			test(t, store, func(ctx context.Context, e *tenure.Election, lead tenure.Lead) <-chan error {
				done, err := e.Start(ctx, lead)
				if err != nil {
					t.Fatal(err)
				}
				return done
			})
		})
	})
}

func TestStayingWorkIsFinishedBeforeTheRelease(t *testing.T) {
	failure := errors.New("broken work")
	for _, want := range []error{nil, failure} {
		ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
			ctx, stop := context.WithCancel(t.Context())
			work := newStaying()
			a := mustNew(t, store, "a", nil)
			done := run(ctx, a, work.lead)
			time.Sleep(time.Second)
			b := start(t, mustNew(t, store, "b", nil), holdOn)
			time.Sleep(5 * lease)
			if s, _ := a.Status(); s.State != tenure.StateLeader || len(work.finished) > 0 || len(done) > 0 {
				t.Fatalf("a is %s, asked to finish %d times, ended %d times, with nothing to end for", s.State, len(work.finished), len(done))
			}
			stop()
			hard := within(t, time.Minute, work.finished, "call of finish")
			time.Sleep(5 * time.Second) // less than FinishWithin
			if hard.Err() != nil || termOf(hard).Err() != nil || len(b.won) > 0 {
				t.Errorf("while the work finishes its context says %v, and b was elected %d times", context.Cause(hard), len(b.won))
			}
			work.result <- want
			if err := within(t, time.Minute, done, "end"); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("it ended with %v, want %v", err, want)
			}
			within(t, time.Second+lease, b.won, "term of b")
			_ = b.end(t)
		})
	}
}

func TestStayingWorkThatResignsEndsRunAndIsNotFinished(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		terms := make(chan *tenure.Term, 1)
		work := newStaying()
		done := run(t.Context(), mustNew(t, store, "a", nil), func(ctx context.Context, term *tenure.Term) error {
			terms <- term
			return work.lead(ctx, term)
		})
		term := within(t, time.Minute, terms, "term")
		time.Sleep(2 * lease)
		if err := term.Resign(t.Context()); err != nil {
			t.Errorf("Resign returned %v", err)
		}
		if err := within(t, time.Minute, done, "end"); err != nil || len(work.finished) > 0 {
			t.Errorf("it ended with %v, and finish was called %d times", err, len(work.finished))
		}
	})
}

func TestStayingWorkCampaignsAgainAfterAHandOver(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		var d diary
		ctx, stop := context.WithCancel(t.Context())
		a := mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = d.note })
		work := newStaying()
		done := run(ctx, a, work.lead)
		failure := errors.New("not all was saved")
		work.result <- failure
		work.result <- nil
		if _, err := a.Wait(ctx, func(s tenure.Status) bool { return s.State == tenure.StateLeader }); err != nil {
			t.Fatal(err)
		}
		if err := a.HandOver(ctx, ""); err != nil {
			t.Fatal(err)
		}
		hard := within(t, time.Minute, work.finished, "call of finish")
		if cause := context.Cause(termOf(hard).Soft()); !errors.Is(cause, tenure.ErrHandOver) {
			t.Errorf("asked to finish because of %v", cause)
		}
		s, err := a.Wait(ctx, func(s tenure.Status) bool { return s.Term > termOf(hard).Token() })
		if err != nil || len(done) > 0 {
			t.Fatalf("no other term: %v, %v", s.State, err)
		}
		stop()
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if e := d.find(tenure.EventFailed); e == nil || !errors.Is(e.Cause, failure) {
			t.Errorf("the error of finish made the event %v", e)
		}
	})
}

func TestStayingWorkThatIsLostCampaignsWhenItHasStopped(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		ctx, stop := context.WithCancel(t.Context())
		cut := faults.New(store, 1, faults.Plan{})
		a := mustNew(t, cut, "a", nil)
		work := newStaying()
		done := run(ctx, a, work.lead)
		time.Sleep(lease)
		cut.Partition()
		hard := within(t, 2*lease, work.finished, "call of finish")
		if cause := context.Cause(hard); !errors.Is(cause, tenure.ErrExpired) {
			t.Errorf("finish is called with a context that says %v", cause)
		}
		cut.Heal()
		time.Sleep(5 * lease)
		if s, _ := a.Status(); s.State != tenure.StateEnded {
			t.Errorf("a is %s though its work has not stopped", s.State)
		}
		work.result <- nil
		work.result <- nil
		if _, err := a.Wait(ctx, func(s tenure.Status) bool { return s.State == tenure.StateLeader }); err != nil {
			t.Errorf("no other term: %v", err)
		}
		stop()
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
		cut.Wait()
	})
}

func TestStayingWorkMayDeclineInTheEnd(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		ctx, stop := context.WithCancel(t.Context())
		a := mustNew(t, store, "a", func(c *tenure.Config) { c.Backoff = func(int) time.Duration { return time.Hour } })
		work := newStaying()
		done := run(ctx, a, work.lead)
		time.Sleep(lease)
		_ = a.HandOver(ctx, "")
		within(t, time.Minute, work.finished, "call of finish")
		work.result <- tenure.ErrDecline
		time.Sleep(time.Hour - time.Minute)
		if s, _ := a.Status(); s.State != tenure.StateCandidate {
			t.Errorf("a is %s within its back-off", s.State)
		}
		time.Sleep(2 * time.Minute)
		if s, _ := a.Status(); s.State != tenure.StateLeader {
			t.Errorf("a is %s after its back-off", s.State)
		}
		stop()
		work.result <- nil
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestStayingWorkThatOverstaysIsOverdueAndNotReleased(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		var d diary
		ctx, stop := context.WithCancel(t.Context())
		a := mustNew(t, store, "a", func(c *tenure.Config) { c.FinishWithin, c.OnEvent = time.Second, d.note })
		work := newStaying()
		done := run(ctx, a, work.lead)
		time.Sleep(lease)
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease)
		stop()
		hard := within(t, time.Minute, work.finished, "call of finish")
		within(t, time.Minute, hard.Done(), "end of the hard context")
		if s, _ := a.Status(); s.State != tenure.StateOverdue || len(b.won) > 0 {
			t.Errorf("a is %s, and b was elected %d times", s.State, len(b.won))
		}
		within(t, 3*lease, b.won, "term of b")
		work.result <- nil
		if err := within(t, time.Minute, done, "end"); err != nil || d.find(tenure.EventOverdue) == nil || d.find(tenure.EventReleased) != nil {
			t.Errorf("it ended with %v; events: %v", err, d.events)
		}
		_ = b.end(t)
	})
}

func TestStayingWhenAskedAlreadyIsFinishedAtOnce(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		ctx, stop := context.WithCancel(t.Context())
		work := newStaying()
		work.result <- nil
		done := run(ctx, mustNew(t, store, "a", nil), func(soft context.Context, term *tenure.Term) error {
			stop()
			<-soft.Done()
			return work.lead(soft, term)
		})
		if err := within(t, time.Second, done, "end"); err != nil || len(work.finished) != 1 {
			t.Errorf("it ended with %v, and finish was called %d times", err, len(work.finished))
		}
	})
}

func TestPanicInFinishReleasesNothing(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		ctx, stop := context.WithCancel(t.Context())
		var term *tenure.Term
		func() {
			defer func() {
				if recover() != "oh" {
					t.Error("the panic did not go on")
				}
			}()
			_ = mustNew(t, store, "a", nil).Run(ctx, func(_ context.Context, won *tenure.Term) error {
				term = won
				stop()
				return tenure.Stay(func(context.Context, *tenure.Term) error { panic("oh") })
			})
		}()
		if err := term.Err(); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("Err is %v", err)
		}
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(lease - time.Second)
		if len(b.won) > 0 {
			t.Error("b leads though nothing was released")
		}
		within(t, 2*lease, b.won, "term of b")
		_ = b.end(t)
	})
}

func TestGoexitInFinishEndsTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done, err := mustNew(t, memory.New(), "a", nil).Start(ctx, func(context.Context, *tenure.Term) error {
			return tenure.Stay(func(context.Context, *tenure.Term) error { runtime.Goexit(); return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease)
		stop()
		if err := within(t, time.Minute, done, "end"); !errors.Is(err, tenure.ErrAbandoned) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestStayingWithNothingToFinish(t *testing.T) {
	ways(t, func(t *testing.T, store operated, run func(context.Context, *tenure.Election, tenure.Lead) <-chan error) {
		ctx, stop := context.WithCancel(t.Context())
		done := run(ctx, mustNew(t, store, "a", nil), func(context.Context, *tenure.Term) error { return tenure.Stay(nil) })
		time.Sleep(2 * lease)
		stop()
		if err := within(t, time.Minute, done, "end"); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// An error that declines and says why must not be lost: the election goes on, so nobody else returns it.
func TestWhyLeadershipWasDeclinedIsTold(t *testing.T) {
	for why, told := range map[error]bool{
		tenure.ErrDecline: false,
		fmt.Errorf("%w: not caught up", tenure.ErrDecline): true,
	} {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { c.OnEvent = d.note }),
				func(context.Context, *tenure.Term) error { return why })
			time.Sleep(10 * time.Second)
			_ = a.end(t)
			if e := d.find(tenure.EventFailed); (e != nil) != told {
				t.Errorf("%v made the event %v", why, e)
			}
		})
	}
}
