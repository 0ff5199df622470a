package tenure_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
)

// steady is work without a goroutine. Its stop sends its context to finished, then returns the next
// result.
type steady struct {
	began    func(context.Context, *tenure.Term) // called when it is elected; may be nil
	finished chan context.Context
	result   chan error
}

func (w *steady) Elected(ctx context.Context, term *tenure.Term) (stop func(context.Context) error, err error) {
	if w.began != nil {
		w.began(ctx, term)
	}
	return func(ctx context.Context) error {
		w.finished <- ctx
		return <-w.result
	}, nil
}

// steadily joins the election with such work.
func (s *scene) steadily(began func(context.Context, *tenure.Term), change ...set) (*process, *steady) {
	s.Helper()
	p := s.new("a", change...)
	g := s.group("a", append([]set{onEvent(p.note)}, change...)...)
	p.Election = g.new().Election
	work := &steady{began, make(chan context.Context, 10), make(chan error, 10)}
	return g.join(p, work), work
}

// asked waits until stop is called, and returns its context.
func (w *steady) asked(s *scene) context.Context {
	s.Helper()
	return within(s.T, time.Minute, w.finished, "call of stop")
}

func leads(s tenure.Status) bool { return s.State == tenure.StateLeader }

func TestHandler(t *testing.T) {
	scenes{
		"it stops before the release": func(s *scene) {
			for _, want := range []error{nil, errBroken} {
				a, work := s.steadily(nil)
				time.Sleep(time.Second)
				b := s.run("b")
				time.Sleep(5 * lease)
				if a.state(tenure.StateLeader); len(work.finished) > 0 || len(a.done) > 0 {
					s.Fatalf("asked to finish %d times, ended %d times, with nothing to end for", len(work.finished), len(a.done))
				}
				a.stop()
				lasting := work.asked(s)
				b.idles(5 * time.Second) // less than FinishWithin
				if lasting.Err() != nil || termOf(lasting).Err() != nil {
					s.Errorf("while the work finishes its context says %v", context.Cause(lasting))
				}
				work.result <- want
				s.is("the end", a.result(), want)
				b.leads(time.Second + lease)
				_ = b.end()
			}
		},
		"resigning ends it without stop": func(s *scene) {
			terms := make(chan *tenure.Term, 1)
			a, work := s.steadily(func(_ context.Context, term *tenure.Term) { terms <- term })
			term := within(s.T, time.Minute, terms, "term")
			time.Sleep(2 * lease)
			s.resign(term)
			s.is("the end", a.result(), nil)
			if len(work.finished) > 0 {
				s.Error("stop was called")
			}
		},
		"it campaigns again after a hand-over": func(s *scene) {
			a, work := s.steadily(nil)
			work.result <- errBroken
			work.result <- nil
			a.waits(leads)
			a.handOver("")
			term := termOf(work.asked(s))
			s.asked(term, tenure.ErrHandOver)
			a.waits(func(s tenure.Status) bool { return s.Term > term.Token() })
			if len(a.done) > 0 {
				s.Error("it has ended")
			}
			s.is("the end", a.end(), nil)
			a.reports(tenure.EventFailed, errBroken)
		},
		"it campaigns after a loss once stop returns": func(s *scene) {
			cut, far := s.faulty()
			a, work := far.steadily(nil)
			time.Sleep(lease)
			cut.Partition()
			time.Sleep(lease)
			s.is("the cause of its context", context.Cause(work.asked(s)), tenure.ErrExpired)
			cut.Heal()
			time.Sleep(5 * lease)
			a.state(tenure.StateEnded)
			work.result <- nil
			work.result <- nil
			a.waits(leads)
			s.is("the end", a.end(), nil)
		},
		"stop may decline": func(s *scene) {
			a, work := s.steadily(nil, patientAfterDecline)
			time.Sleep(lease)
			a.handOver("")
			work.asked(s)
			work.result <- tenure.ErrDecline
			time.Sleep(time.Hour - time.Minute)
			a.state(tenure.StateCandidate)
			time.Sleep(2 * time.Minute)
			a.state(tenure.StateLeader)
			work.result <- nil
			s.is("the end", a.end(), nil)
		},
		"it is not released while overdue": func(s *scene) {
			a, work := s.steadily(nil, finishWithin(time.Second))
			time.Sleep(lease)
			b := s.run("b")
			time.Sleep(lease)
			a.stop()
			s.ended(termOf(work.asked(s)), time.Minute, tenure.ErrOverdue)
			a.state(tenure.StateOverdue)
			s.is("Health", a.Status().Health(), tenure.ErrOverdue)
			b.idles(0)
			b.leads(3 * lease)
			work.result <- nil
			s.is("the end", a.result(), nil)
			b.state(tenure.StateLeader)
			a.reports(tenure.EventOverdue, tenure.ErrOverdue)
			a.hides(tenure.EventReleased)
		},
		"it stops at once if asked while elected": func(s *scene) {
			asked := make(chan func(), 1)
			a, work := s.steadily(func(ctx context.Context, _ *tenure.Term) {
				(<-asked)()
				<-ctx.Done()
			})
			work.result <- nil
			asked <- a.stop
			if s.is("the end", within(s.T, time.Second, a.done, "end"), nil); len(work.finished) != 1 {
				s.Errorf("stop was called %d times", len(work.finished))
			}
		},
	}.play(t)
}

// An error that declines with a reason must not be lost. The election goes on, so no function
// returns the error.
func TestReasonForDecliningIsReported(t *testing.T) {
	play(t, func(s *scene) {
		for why, reported := range map[error]bool{
			tenure.ErrDecline: false,
			fmt.Errorf("%w: not caught up", tenure.ErrDecline): true,
		} {
			a := s.new("a").start(returns(why))
			time.Sleep(10 * time.Second)
			_ = a.end()
			if e := a.find(tenure.EventFailed); (e != nil) != reported {
				s.Errorf("%v made the event %v", why, e)
			}
		}
	}, watched)
}

// left fails unless Run ended because of Leave and no further term follows.
func (p *process) left() {
	p.s.Helper()
	p.s.is("Run", p.result(), nil)
	p.idles(10 * lease)
	p.state(tenure.StateIdle)
}

func TestLeave(t *testing.T) {
	scenes{
		"it ends a candidate, which may campaign again": func(s *scene) {
			a, _ := s.elect("a")
			g := s.group("b")
			b := g.new().start(holdOn)
			time.Sleep(lease)
			g.Leave(b.Election)
			b.left()
			b.start(holdOn)
			time.Sleep(lease)
			_ = a.end()
			b.leads()
		},
		"it lets a leader finish and release": func(s *scene) {
			g := s.group("a")
			a := g.new().start(holdOn)
			term := a.leads()
			b := s.run("b")
			time.Sleep(lease)
			g.Leave(a.Election)
			a.left()
			s.asked(term, tenure.ErrShutdown)
			s.is("Err", term.Err(), tenure.ErrReleased)
			b.leads()
		},
		// The work of a lost term, or work that does not return, stops when it can.
		"the work goes on after a loss": func(s *scene) {
			f, far := s.faulty()
			finish := make(chan struct{})
			g := far.group("a")
			a := g.new().start(func(context.Context, *tenure.Term) error {
				<-finish
				return nil
			})
			term := a.leads()
			f.Partition()
			<-term.LeaseContext().Done()
			f.Heal()
			g.Leave(a.Election)
			synctest.Wait()
			if len(a.done) > 0 {
				s.Error("Run has returned before its work did")
			}
			close(finish)
			a.left()
		},
		"it ends a back-off": func(s *scene) {
			g := s.group("a", patientAfterDecline)
			a := g.new().start(returns(tenure.ErrDecline))
			a.leads()
			time.Sleep(time.Minute)
			g.Leave(a.Election)
			a.left()
		},
		"it affects neither a Campaign nor a later Run": func(s *scene) {
			a, _ := s.elect("a")
			g := s.group("b")
			b := g.new()
			g.Leave(b.Election)
			won := make(chan *tenure.Term, 1)
			go func() {
				term, err := b.Campaign(s.Context())
				s.is("Campaign", err, nil)
				won <- term
			}()
			time.Sleep(lease)
			g.Leave(b.Election)
			_ = a.end()
			term := within(s.T, time.Minute, won, "term of b")
			g.Leave(b.Election)
			time.Sleep(lease)
			s.holds(term)
			s.resign(term)
		},
	}.play(t)
}

// termOf returns the term of a context, or nil.
func termOf(ctx context.Context) *tenure.Term {
	term, _ := tenure.FromContext(ctx)
	return term
}
