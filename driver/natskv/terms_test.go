package natskv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// member campaigns until the test ends or stop is called.
func (f *fixture) member(t *testing.T, s *Store, id string, onEvent func(tenure.Event)) (e *tenure.Election, stop func()) {
	e, err := tenure.New(s, testKey, tenure.Config{
		ID: id, Lease: 5 * time.Second, Clock: clock.Standard{}, OnEvent: onEvent,
	})
	f.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return e, stop
}

// TestGoodTermsAboveTheFloor: a handle that hides its stream sees the bare sequence, while terms of
// the other members are times in microseconds. None of these terms is lost. The last possible term
// is malformed over a handle as well.
func TestGoodTermsAboveTheFloor(t *testing.T) { inBubble(t, goodTermsAboveTheFloor) }

func goodTermsAboveTheFloor(t *testing.T) {
	f := newFixture(t)
	alarms := make(chan tenure.Event, 100)
	first, stop := f.member(t, f.store, "first", nil)
	leads := func(s tenure.Status) bool { return s.State == tenure.StateLeader }
	before, err := first.Wait(wait.Context(t), leads)
	f.must(err)
	bare := closedAfter(t, FromKeyValue(wrapped{f.kv}))
	second, _ := f.member(t, bare, "second", func(e tenure.Event) {
		if e.Kind == tenure.EventAlarm {
			alarms <- e
		}
	})
	_, err = second.Wait(wait.Context(t), func(s tenure.Status) bool { return s.Leader.ID == "first" })
	f.must(err)
	stop()
	after, err := second.Wait(wait.Context(t), leads)
	f.must(err)
	if after.Term <= before.Term || before.Term < 1<<49 { // the time in a bubble begins in 2000
		t.Errorf("term %d after term %d", after.Term, before.Term)
	}
	if len(alarms) > 0 {
		t.Errorf("alarmed: %v", (<-alarms).Cause)
	}
	f.put(testKey, fmt.Sprintf(`{"leaderID":"x","incarnation":"i","term":%d,"leaseMillis":5000,"nonce":"n"}`, uint64(1<<53-1)))
	if e := <-alarms; !errors.Is(e.Cause, tenure.ErrMalformed) {
		t.Errorf("alarmed: %v", e.Cause)
	}
	again, err := second.Wait(wait.Context(t), func(s tenure.Status) bool { return leads(s) && s.Term > after.Term })
	f.must(err)
	if again.Term > after.Term+100 {
		t.Errorf("term %d after term %d", again.Term, after.Term)
	}
}
