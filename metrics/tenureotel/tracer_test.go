package tenureotel_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics/tenureotel"
)

const lease = 15 * time.Second

// stage is a Tracer with a recorder of its spans, and a store that can be cut off.
type stage struct {
	*testing.T
	*tracetest.SpanRecorder
	store  *memory.Store
	faults faults.Store
	tracer *tenureotel.Tracer
	won    chan *tenure.Term
	done   chan error
	stop   context.CancelFunc
}

func newStage(t *testing.T, next func(tenure.Event)) *stage {
	s := &stage{T: t, SpanRecorder: tracetest.NewSpanRecorder(), store: memory.New()}
	s.faults = faults.New(s.store, 1, faults.Plan{})
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.SpanRecorder))
	s.tracer = tenureotel.NewTracer(provider, next)
	s.won, s.done = make(chan *tenure.Term, 100), make(chan error, 1)
	return s
}

// config returns the settings of a member whose events the Tracer gets.
func (s *stage) config() tenure.Config {
	return tenure.Config{
		ID: "node-1", Lease: lease, FinishWithin: 10 * time.Second, OnEvent: s.tracer.OnEvent,
	}
}

// run runs an election in the background until stop, and returns its first term.
func (s *stage) run(work tenure.Lead) *tenure.Term {
	s.Helper()
	e, err := tenure.New(s.faults, "job", s.config())
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.Context())
	s.stop = stop
	go func() {
		s.done <- e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			s.won <- term
			return work(ctx, term)
		})
	}()
	return <-s.won
}

// want compares the last span that has ended: its events with their reasons, and its end.
func (s *stage) want(term *tenure.Term, end time.Time, status codes.Code, events ...string) {
	s.Helper()
	synctest.Wait()
	ended := s.Ended()
	if len(ended) == 0 {
		s.Fatal("no span has ended")
	}
	span := ended[len(ended)-1]
	var got []string
	for _, e := range span.Events() {
		of := attribute.NewSet(e.Attributes...)
		reason, _ := of.Value("tenure.reason")
		if cause, ok := of.Value("tenure.cause"); ok == (reason.AsString() == "") || ok && cause.AsString() == "" {
			s.Errorf("%s has the reason %q and the cause %q", e.Name, reason.AsString(), cause.AsString())
		}
		got = append(got, fmt.Sprintf("%s %s", e.Name, reason.AsString()))
	}
	got = slices.Compact(got)
	// Whether a candidate fails once more before the work ends depends on its random pauses.
	if last := len(got) - 1; last > 0 && got[last] == "tenure.trouble no-answer" {
		got = got[:last]
	}
	if !slices.Equal(got, events) {
		s.Errorf("the events are %q, want %q", got, events)
	}
	if span.Name() != "tenure.term" || span.Parent().IsValid() {
		s.Errorf("the span %s has the parent %v", span.Name(), span.Parent())
	}
	about := attribute.NewSet(span.Attributes()...)
	wanted := attribute.NewSet(attribute.String("tenure.election", "job"), attribute.String("tenure.id", "node-1"),
		attribute.Int64("tenure.term", int64(term.Token())))
	if !about.Equals(&wanted) {
		s.Errorf("the attributes are %v", span.Attributes())
	}
	if got := span.Status(); got.Code != status || (got.Description == "") != (status == codes.Unset) {
		s.Errorf("the status is %v", got)
	}
	if !span.EndTime().Equal(end) {
		s.Errorf("it ended at %v, want %v", span.EndTime(), end)
	}
}

// open compares the number of open spans, in a bubble.
func (s *stage) open(want int) {
	s.Helper()
	synctest.Wait()
	s.openNow(want)
}

// openNow is open without waiting for other goroutines.
func (s *stage) openNow(want int) {
	s.Helper()
	if n := len(s.Started()) - len(s.Ended()); n != want {
		s.Errorf("%d spans are open, want %d", n, want)
	}
}

// lasting is work that takes a time to stop.
func lasting(d time.Duration) tenure.Lead {
	return func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		time.Sleep(d)
		return nil
	}
}

var slowly = lasting(3 * time.Second)

// TestSpans covers the ends of a term. The span begins with the term. It ends when act returns.
func TestSpans(t *testing.T) {
	for _, tt := range []struct {
		name   string
		work   tenure.Lead
		act    func(*stage, *tenure.Term)
		status codes.Code
		events []string
	}{
		{"released", slowly, func(s *stage, _ *tenure.Term) {
			time.Sleep(time.Minute)
			s.open(1)
			s.stop()
			time.Sleep(2 * time.Second)
			s.open(1)
			<-s.done
		}, codes.Unset, []string{"tenure.leaving shutdown", "tenure.released "}},
		{"released without confirmation", slowly, func(s *stage, _ *tenure.Term) {
			s.faults.Partition()
			s.stop()
			<-s.done
		}, codes.Unset, []string{"tenure.leaving shutdown", "tenure.trouble no-answer", "tenure.released unconfirmed"}},
		{"expired", slowly, func(s *stage, term *tenure.Term) {
			s.faults.Partition()
			<-term.Context().Done()
			s.open(1) // the work goes on
			time.Sleep(3 * time.Second)
			s.open(0)
		}, codes.Error, []string{"tenure.trouble no-answer", "tenure.lost expired"}},
		{"deposed", slowly, func(s *stage, term *tenure.Term) {
			s.store.Put("job", s.laterRecord())
			<-term.Context().Done()
			s.open(1)
			time.Sleep(3 * time.Second)
		}, codes.Error, []string{"tenure.lost deposed"}},
		// If this process does not campaign again, no event shows when the work has stopped.
		{"lost without an end", slowly, func(s *stage, term *tenure.Term) {
			s.store.Delete("job")
			<-term.Context().Done()
			s.stop()
			s.store.Put("job", []byte("something else"))
			<-s.done
			s.open(1)
			time.Sleep(time.Second)
			s.tracer.End()
		}, codes.Error, []string{"tenure.alarm deleted", "tenure.lost deleted", "tenure.alarm foreign"}},
		{"overdue", lasting(12 * time.Second), func(s *stage, term *tenure.Term) {
			s.stop()
			<-term.LeaseContext().Done()
			s.open(1)
			<-s.done
		}, codes.Error, []string{"tenure.leaving shutdown", "tenure.overdue overdue", "tenure.lost overdue", "tenure.released "}},
		// The process ends while it leads, so there is no event of the end.
		{"led until the process ends", slowly, func(s *stage, _ *tenure.Term) {
			time.Sleep(time.Minute)
			s.tracer.End()
		}, codes.Unset, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, nil)
				began := time.Now()
				term := s.run(tt.work)
				s.open(1)
				tt.act(s, term)
				s.want(term, time.Now(), tt.status, tt.events...)
				if at := s.Ended()[0].StartTime(); !at.Equal(began) {
					t.Errorf("it began at %v, want %v", at, began)
				}
				s.stop()
				s.faults.Heal()
				time.Sleep(time.Minute)
				s.open(0)
			})
		})
	}
}

// laterRecord returns the record of another member in a later term, made on a copy of the store.
func (s *stage) laterRecord() []byte {
	rival := memory.New()
	rival.Restore(s.store.Snapshot())
	rival.Delete("job")
	e, err := tenure.New(rival, "job", tenure.Config{ID: "node-2", Lease: lease})
	if err == nil {
		_, err = e.Campaign(s.Context())
	}
	if err != nil {
		s.Fatal(err)
	}
	entry, _ := rival.Read(s.Context(), "job")
	return entry.Value
}

// No event follows the loss of a term whose work panicked or ended by Goexit.
func TestSpanOfAbandonedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		g, err := tenure.NewGroup(s.faults, s.config())
		if err != nil {
			t.Fatal(err)
		}
		e, err := g.Election("job")
		if err != nil {
			t.Fatal(err)
		}
		ended, err := g.Join(t.Context(), e, tenure.Lead(func(_ context.Context, term *tenure.Term) error {
			s.won <- term
			runtime.Goexit()
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		<-ended
		s.want(<-s.won, time.Now(), codes.Error, "tenure.lost abandoned")
	})
}

func TestSpanOfWorkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		term := s.run(func(ctx context.Context, term *tenure.Term) error {
			if term.Token() > 1 {
				return nil
			}
			return fmt.Errorf("%w: no disk", tenure.ErrDecline)
		})
		s.want(term, time.Now(), codes.Unset, "tenure.failed declined", "tenure.released ")
		next := <-s.won
		<-s.done
		s.want(next, time.Now(), codes.Unset, "tenure.released ")
	})
}

// All events are passed on, in their order. Events of other members make no span.
func TestEventsArePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kinds []tenure.EventKind
		s := newStage(t, func(e tenure.Event) { kinds = append(kinds, e.Kind) })
		other, err := tenure.New(s.faults, "job", tenure.Config{ID: "node-2", Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		leader, err := other.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { s.open(0); _ = leader.Resign(context.Background()) })
		s.run(slowly)
		s.stop()
		<-s.done
		synctest.Wait()
		isLeader := func(k tenure.EventKind) bool { return k == tenure.EventLeader }
		if !slices.ContainsFunc(kinds, isLeader) {
			t.Errorf("next got no leader in %v", kinds)
		}
		want := []tenure.EventKind{tenure.EventCandidate, tenure.EventElected, tenure.EventLeaving, tenure.EventReleased}
		// A push may come at any time.
		if got := slices.DeleteFunc(kinds, isLeader); !slices.Equal(got, want) {
			t.Errorf("next got %v, want %v", got, want)
		}
	})
}

// event returns an event of term 1, at this second.
func event(kind tenure.EventKind, election, id string, second int64) tenure.Event {
	return tenure.Event{Kind: kind, Election: election, ID: id, Term: 1, Time: time.Unix(second, 0)}
}

// An event may be missing because OnEvent was too slow. That leaves no span open.
func TestSpanWithoutTheEventOfItsEnd(t *testing.T) {
	for _, kind := range []tenure.EventKind{tenure.EventElected, tenure.EventCandidate} {
		s := newStage(t, nil)
		s.tracer.OnEvent(event(tenure.EventElected, "job", "a", 1))
		s.tracer.OnEvent(event(kind, "job", "b", 2))
		s.tracer.OnEvent(event(kind, "other", "a", 2))
		if len(s.Ended()) > 0 {
			t.Errorf("%s of another candidate ended the span", kind)
		}
		s.tracer.OnEvent(event(kind, "job", "a", 3))
		if n := len(s.Ended()); n != 1 {
			t.Errorf("%s ended %d spans", kind, n)
		}
	}
}

// The times are those of the events, even if OnEvent is called late.
func TestTimesOfASpan(t *testing.T) {
	s := newStage(t, nil)
	s.tracer.OnEvent(event(tenure.EventElected, "job", "a", 1))
	s.tracer.OnEvent(event(tenure.EventLeaving, "job", "a", 2))
	s.tracer.OnEvent(event(tenure.EventReleased, "job", "a", 3))
	span := s.Ended()[0]
	times := []int64{span.StartTime().Unix(), span.Events()[0].Time.Unix(), span.Events()[1].Time.Unix(), span.EndTime().Unix()}
	if !slices.Equal(times, []int64{1, 2, 3, 3}) {
		t.Errorf("the times are %v", times)
	}
}

// Lost terms without further events do not accumulate. Terms that have ended do not count.
func TestSpansOfLostTermsAreBounded(t *testing.T) {
	s := newStage(t, nil)
	lose := func(group string, n int) {
		for i := range n {
			name := fmt.Sprint(group, "-", i)
			s.tracer.OnEvent(event(tenure.EventElected, name, "a", 1))
			s.tracer.OnEvent(event(tenure.EventLost, name, "a", 2))
		}
	}
	lose("first", 100)
	for i := range 100 {
		s.tracer.OnEvent(event(tenure.EventCandidate, fmt.Sprint("first-", i), "a", 3))
	}
	s.openNow(0)
	lose("second", 10_000)
	s.openNow(10_000)
	lose("third", 100)
	s.openNow(10_000)
	s.tracer.End()
	s.openNow(0)
}

func TestTermsThatHaveEndedNeedNoMemory(t *testing.T) {
	tracer := tenureotel.NewTracer(noop.NewTracerProvider(), nil)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for _, end := range []func(name string){
		func(name string) { tracer.OnEvent(event(tenure.EventReleased, name, "a", 2)) },
		func(string) { tracer.End() },
	} {
		for i := range 50_000 {
			name := fmt.Sprint("job-", i)
			tracer.OnEvent(event(tenure.EventElected, name, "a", 1))
			end(name)
		}
		if more := heap() - before; more > 1<<20 {
			t.Errorf("50,000 terms left %d bytes", more)
		}
	}
	runtime.KeepAlive(tracer)
}

// counter is work without a goroutine.
type counter struct{ led sync.WaitGroup }

func (c *counter) Elected(context.Context, *tenure.Term) (stop func(context.Context) error, err error) {
	c.led.Done()
	return func(context.Context) error { return nil }, nil
}

func TestSpansOfManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := newStage(t, nil)
		g, err := tenure.NewGroup(s.faults, s.config())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("shard-", i))
		}
		ctx, stop := context.WithCancel(t.Context())
		work, done := &counter{}, make(chan error)
		work.led.Add(n)
		go func() { done <- g.Run(ctx, work, names...) }()
		work.led.Wait()
		s.open(n)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.open(0)
		seen := map[string]bool{}
		for _, span := range s.Ended() {
			of := attribute.NewSet(span.Attributes()...)
			name, _ := of.Value("tenure.election")
			seen[name.AsString()] = true
			if len(span.Events()) != 2 {
				t.Errorf("the span of %s has %d events", name.AsString(), len(span.Events()))
			}
		}
		if len(seen) != n {
			t.Errorf("spans of %d elections", len(seen))
		}
	})
}
