package peer

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// slowAnswer applies a write and delays its answer until the test releases it.
type slowAnswer struct {
	*memory.Polled
	hold    chan struct{}
	applied chan struct{}
}

func (s *slowAnswer) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := s.Polled.CompareAndSwap(ctx, key, prev, value)
	if s.hold != nil {
		close(s.applied)
		<-s.hold
	}
	return v, err
}

// A renewal is applied and its answer is in flight. Another read overtakes the answer.
func TestReadThatOvertakesTheAnswerToARenewal(t *testing.T) {
	cells := &slowAnswer{Polled: memory.NewPolled()}
	s := open(t, wires{}, cells, nil)
	name := s.Incarnation()
	v1 := write(t, s, testKey, held(name, 1, 1))
	cells.hold, cells.applied = make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.CompareAndSwap(t.Context(), testKey, v1, encode(t, held(name, 1, 2))); err != nil {
			t.Error(err)
		}
	}()
	<-cells.applied
	e, err := s.Read(t.Context(), testKey) // such as a second election's of this process
	if err != nil {
		t.Fatal(err)
	}
	close(cells.hold)
	<-done
	cells.hold = nil
	if _, p := s.books.look(testKey); p == nil {
		t.Error("the leader is not served after a read overtook its renewal's answer")
	}
	if _, err := s.CompareAndSwap(t.Context(), testKey, e.Version, encode(t, held(name, 1, 3))); err != nil {
		t.Fatal(err)
	}
	if _, p := s.books.look(testKey); p == nil {
		t.Error("nor after its next renewal")
	}
}

// An election may keep back more than the defaults. Margin declares it.
func TestNothingIsServedAfterTheTermsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &downable{Polled: memory.NewPolled()}
		cfg := tenure.Config{
			ID: "a", Lease: 4 * time.Second, Tuning: tenure.Tuning{Renew: 500 * time.Millisecond, Drift: 0.1}, StopWithin: 2 * time.Second,
			Clock: clock.Standard{},
		}
		s := open(t, wires{}, down, func(c *Config) { c.Margin, c.Clock = cfg.Margin(), cfg.Clock })
		e, err := tenure.New(s, testKey, cfg)
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		down.down.Store(true)
		<-term.Context().Done()
		if _, p := s.books.look(testKey); p != nil {
			t.Error("Path answers 200 while the term is over by the election's own account")
		}
		_ = term.Resign(t.Context()) // it is over
	})
}

type downable struct {
	*memory.Polled
	down atomic.Bool
}

func (d *downable) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if d.down.Load() {
		return "", context.DeadlineExceeded
	}
	return d.Polled.CompareAndSwap(ctx, key, prev, value)
}
