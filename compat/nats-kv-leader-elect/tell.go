package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

func (e *Elector) debugf(format string, a ...any) {
	e.debug("%s @ %s.%s: %s", e.name, e.bucket, e.election.Name(), fmt.Sprintf(format, a...))
}

// report passes one event of the election to the callbacks.
func (e *Elector) report(event tenure.Event) {
	switch {
	case event.Kind == tenure.EventLeader && event.Leader.Exists():
		e.debugf("%s leads, with token %d", event.Leader.ID, event.Term)
	case event.Kind == tenure.EventLeader:
		e.debugf("nobody leads")
	case event.Cause != nil:
		e.debugf("%s: %v", event.Kind, event.Cause)
	default:
		e.debugf("%s", event.Kind)
	}
	if isFailure(event) {
		e.onError(fmt.Errorf("election: %s: %w", event.Kind, event.Cause))
	}
}

// isFailure reports whether OnError is called for an event.
func isFailure(event tenure.Event) bool {
	return event.Cause != nil && event.Kind != tenure.EventLeaving && event.Kind != tenure.EventWaiting
}

const inspectWithin = 5 * time.Second

// inspect reads the bucket's settings in a goroutine of its own, and reports unsafe or unwise ones.
// Stop ends that goroutine.
func (a *attendance) inspect() (stop func()) {
	return inBackground(a.ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, inspectWithin)
		defer cancel()
		found, err := driver.AbilitiesOf(a.store).Inspect(ctx, a.lease)
		if err != nil && ctx.Err() == nil {
			a.debugf("the bucket cannot be inspected: %v", err)
		}
		for _, f := range found {
			a.tell(f)
		}
	})
}

// inBackground calls do in a goroutine. Stop ends the context of do, and waits until do has
// returned.
func inBackground(ctx context.Context, do func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (a *attendance) tell(f driver.Finding) {
	if f.Severity == driver.Advice {
		return
	}
	a.debugf("%s", f)
	if f.Severity == driver.Unsafe {
		a.onError(errors.New("election: " + f.String()))
	}
}
