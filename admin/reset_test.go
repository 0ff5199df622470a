package admin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/protocol"
)

// pausing is a clock and a store. A read takes a set time on this clock.
type pausing struct {
	clock.System
	*memory.Store
	pause, passed time.Duration
}

func (p *pausing) Now() clock.Reading {
	return clock.Reading{Instant: clock.Instant{Mono: p.passed, Raw: p.passed, Boot: p.passed}}
}

func (p *pausing) Read(ctx context.Context, key string) (driver.Entry, error) {
	defer func() { p.passed += p.pause }()
	return p.Store.Read(ctx, key)
}

// A process that is stopped between its read and its write must not write over the version that it
// read: versions may recur during the stop (rule L3a).
func TestResetWritesNothingAfterAPause(t *testing.T) {
	const lease = 15 * time.Second
	for pause, want := range map[time.Duration]error{lease / 4: nil, lease / 3: protocol.ErrTimeout} {
		p := &pausing{Store: memory.New(), pause: pause}
		p.Put("job", []byte("mine"))
		systemClock = p
		_, err := Reset(t.Context(), p, "job", lease)
		systemClock = clock.System{}
		if !errors.Is(err, want) {
			t.Errorf("after a pause of %v Reset returned %v, want %v", pause, err, want)
		}
		if e, _ := p.Store.Read(t.Context(), "job"); (string(e.Value) == "mine") != (want != nil) {
			t.Errorf("after a pause of %v the store holds %q", pause, e.Value)
		}
	}
}

func TestResetRefusesALeaseOutOfRange(t *testing.T) {
	for _, lease := range []time.Duration{-time.Second, 0, time.Millisecond - 1, time.Hour + 1} {
		if _, err := Reset(t.Context(), memory.New(), "job", lease); err == nil {
			t.Errorf("a lease of %v was accepted", lease)
		}
	}
}
