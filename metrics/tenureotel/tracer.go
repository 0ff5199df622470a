package tenureotel

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/tenure-go/tenure"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer records a span for each term that this process leads. Set [tenure.Config.OnEvent] to its
// OnEvent, for any number of elections on one store. Its methods may be called concurrently.
//
// The span "tenure.term" is a root span with the attributes tenure.election, tenure.id and
// tenure.term. It begins when this process is elected. It ends when the term is over and its work
// has stopped: with the release, or after a loss when the next campaign begins. After a panic it
// ends with the loss, since no event shows when such work has stopped. At most 10,000 lost terms
// have open spans; beyond that, one of them ends early. The status of the span is Error if the term
// was lost, with the reason of [tenure.ReasonOf].
//
// The span has an event for each of these events of the election in that time: tenure.leaving,
// tenure.lost, tenure.overdue, tenure.failed, tenure.trouble, tenure.alarm and tenure.released.
// They have the attributes tenure.reason and tenure.cause if the event has a cause. The provider
// limits how many events a span keeps: by default the last 128.
//
// Elections of the same name and ID, for example on different stores, need a Tracer each.
type Tracer struct {
	tracer trace.Tracer
	next   func(tenure.Event)

	mu sync.Mutex
	// leading and lost have the spans of open terms. Those in lost have ended, and their work may
	// still run.
	leading, lost map[candidate]trace.Span
}

// candidate is this process in one election.
type candidate struct{ election, id string }

// maxLost bounds the spans of lost terms. There is no event when the work of a lost term stops, if
// this process campaigns no more.
const maxLost = 10_000

// NewTracer returns a Tracer that records its spans with the provider. It passes each event on to
// next, unless that is nil.
func NewTracer(provider trace.TracerProvider, next func(tenure.Event)) *Tracer {
	return &Tracer{
		tracer: provider.Tracer(scope), next: next,
		leading: map[candidate]trace.Span{}, lost: map[candidate]trace.Span{},
	}
}

// OnEvent records an event and passes it on.
func (t *Tracer) OnEvent(e tenure.Event) {
	who := candidate{e.Election, e.ID}
	switch e.Kind {
	case tenure.EventElected:
		t.end(who, &e) // the event that should have ended it was dropped
		t.begin(who, &e)
	case tenure.EventCandidate:
		t.end(who, &e)
	case tenure.EventLeader, tenure.EventAsking, tenure.EventWaiting: // they are not about a term
	default:
		t.record(who, &e)
	}
	if t.next != nil {
		t.next(e)
	}
}

// End ends all spans that are open. Call it when Run has returned, before the Shutdown of the
// provider. Otherwise spans of lost terms may be missing: if this process no longer campaigns, no
// event shows when their work has stopped.
func (t *Tracer) End() {
	t.mu.Lock()
	open := t.leading
	maps.Copy(open, t.lost)
	t.leading, t.lost = map[candidate]trace.Span{}, map[candidate]trace.Span{}
	t.mu.Unlock()
	for _, span := range open {
		span.End()
	}
}

func (t *Tracer) begin(who candidate, e *tenure.Event) {
	_, span := t.tracer.Start(context.Background(), "tenure.term", trace.WithTimestamp(e.Time), trace.WithAttributes(
		attribute.String("tenure.election", e.Election),
		attribute.String("tenure.id", e.ID),
		attribute.Int64("tenure.term", int64(e.Term)), // below 2^53
	))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leading[who] = span
}

// end ends the span of a candidate, if there is one.
func (t *Tracer) end(who candidate, e *tenure.Event) {
	t.mu.Lock()
	span := t.take(who)
	t.mu.Unlock()
	if span != nil {
		span.End(trace.WithTimestamp(e.Time))
	}
}

// take removes the open span of a candidate and returns it, or nil. It runs under the lock.
func (t *Tracer) take(who candidate) trace.Span {
	span := t.leading[who]
	if span == nil {
		span = t.lost[who]
	}
	delete(t.leading, who)
	delete(t.lost, who)
	return span
}

// lose records that the term of a candidate is lost. If there are too many lost terms, it removes
// the span of another one and returns it.
func (t *Tracer) lose(who candidate) (excess trace.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	span := t.take(who)
	if span == nil {
		return nil // End came first
	}
	if len(t.lost) >= maxLost {
		for other := range t.lost {
			excess = t.take(other)
			break
		}
	}
	t.lost[who] = span
	return excess
}

// open returns the open span of a candidate, or nil.
func (t *Tracer) open(who candidate) trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	if span := t.leading[who]; span != nil {
		return span
	}
	return t.lost[who]
}

// record adds an event to the open span of a candidate, if there is one.
func (t *Tracer) record(who candidate, e *tenure.Event) {
	span := t.open(who)
	if span == nil {
		return
	}
	reason := string(tenure.ReasonOf(e.Cause))
	var about []attribute.KeyValue
	if e.Cause != nil {
		about = append(about, attribute.String("tenure.reason", reason), attribute.String("tenure.cause", e.Cause.Error()))
	}
	span.AddEvent("tenure."+string(e.Kind), trace.WithTimestamp(e.Time), trace.WithAttributes(about...))
	if e.Kind == tenure.EventLost {
		span.SetStatus(codes.Error, reason)
		if excess := t.lose(who); excess != nil {
			excess.End()
		}
	}
	if e.Kind == tenure.EventReleased || errors.Is(e.Cause, tenure.ErrAbandoned) {
		t.end(who, e)
	}
}
