package natskv

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
)

// TestStranded: a server that has lost the rest of its cluster gives signs of life, and nothing else. It is left, sooner if
// it says so.
func TestStranded(t *testing.T) {
	answer := func(text string) *nats.Msg { return &nats.Msg{Data: []byte(text)} }
	silent := func(k *keeper, what task) {
		k.unanswered(time.Now().Add(-suspicious), what, context.DeadlineExceeded)
	}
	for _, c := range []struct {
		name  string
		vain  func(k *keeper)
		after time.Duration // 0: never
	}{
		{"a write without an answer", func(k *keeper) { silent(k, writing) }, silentFor},
		{"a read without an answer", func(k *keeper) { silent(k, reading) }, silentFor},
		{"nobody listens", func(k *keeper) { k.unanswered(time.Now(), reading, nats.ErrNoResponders) }, inVainFor},
		{"not available", func(k *keeper) { k.answered(answer(`{"error":{"code":503,"err_code":10008}}`), reading) }, inVainFor},
		{"the last write is under way", func(k *keeper) { k.answered(answer(`{"error":{"code":400,"err_code":10164}}`), writing) }, inVainFor},
		{"writes fail and reads succeed", func(k *keeper) {
			k.answered(answer(`{"error":{"code":400,"err_code":10158}}`), writing)
			k.answered(answer(`{"message":{}}`), reading)
		}, inVainFor},
		{"a write without an answer, then only reads", func(k *keeper) {
			k.mu.Lock()
			begun := k.writes.live()
			k.mu.Unlock()
			if !begun {
				silent(k, writing)
			}
			k.answered(answer(`{"error":{"code":503,"err_code":10008}}`), reading)
		}, inVainFor},
		{"a write without an answer, then refused", func(k *keeper) {
			silent(k, writing)
			k.answered(answer(`{"error":{"code":400,"err_code":10071}}`), writing)
		}, inVainFor},
		{"the bucket is described, and cannot be read", func(k *keeper) {
			k.answered(answer(`{"error":{"code":503,"err_code":10008}}`), reading)
			k.answered(answer(`{"config":{}}`), asking)
		}, inVainFor},
		{"an ordinary conflict", func(k *keeper) { k.answered(answer(`{"error":{"code":400,"err_code":10071}}`), writing) }, 0},
		{"short contexts", func(k *keeper) { k.unanswered(time.Now(), reading, context.DeadlineExceeded) }, 0},
		{"denied", func(k *keeper) { k.unanswered(time.Now().Add(-time.Hour), reading, driver.ErrDenied) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := newFixture(t)
				s, _, lost := twoWays(t, f, natstest.Unpinged)
				k := s.own
				failed := func(since time.Duration) {
					c.vain(k)
					k.mu.Lock()
					for _, all := range []*stretch{&k.reads, &k.writes} {
						if !all.since.IsZero() {
							all.since = time.Now().Add(-since)
						}
					}
					k.mu.Unlock()
					c.vain(k)
					k.tasks.Wait()
				}
				failed(inVainFor / 2)
				k.answered(answer(`{"stream":"KV_B","seq":1}`), writing) // after which all is well
				anew := time.Now().Add(-suspicious)
				c.vain(k)
				k.tasks.Wait()
				for _, all := range []stretch{k.reads, k.writes} {
					if !all.since.IsZero() && all.since.Before(anew) {
						t.Errorf("after a success the trouble is of %v before that", anew.Sub(all.since))
					}
				}
				failed(max(c.after, inVainFor) - inVainFor/2)
				if n := s.own.nc.Stats().Reconnects; n > 0 {
					t.Fatal("it moved too early")
				}
				failed(max(c.after, inVainFor))
				if c.after == 0 {
					if n := s.own.nc.Stats().Reconnects; n > 0 || len(lost.All()) > 0 {
						t.Error("it moved for no reason")
					}
					return
				}
				eventually(t, "it moves on", func() bool { return len(lost.All()) > 0 && readable(s) })
			})
		})
	}
}

// TestMovesAreRare: where moving does not help, it must not become the trouble. It is tried for about as often in the next
// minute as in the first seconds.
func TestMovesAreRare(t *testing.T) { synctest.Test(t, movesAreRare) }

func movesAreRare(t *testing.T) {
	for _, c := range []struct{ trouble, pause time.Duration }{
		{0, time.Second}, {8 * time.Second, time.Second}, {20 * time.Second, 2500 * time.Millisecond}, {time.Hour, 30 * time.Second},
	} {
		k := &keeper{}
		if c.trouble > 0 {
			k.reads.add(time.Now().Add(-c.trouble), true)
		}
		if d := k.pause(); d != c.pause {
			t.Errorf("in the trouble's %v the pause is %v; want %v", c.trouble, d, c.pause)
		}
		k.moved = time.Now().Add(1 - c.pause)
		early := k.mayMove()
		k.moved = time.Now().Add(-c.pause)
		if early || !k.mayMove() {
			t.Errorf("in the trouble's %v: early %v, after the pause %v", c.trouble, early, k.mayMove())
		}
	}
}

// TestStretch: an old failure has nothing to do with the next one, and a new connection gets time of its own.
func TestStretch(t *testing.T) { synctest.Test(t, stretches) }

func stretches(t *testing.T) {
	var s stretch
	s.add(time.Now().Add(-time.Minute), false)
	if !outlasts(time.Time{}, s) || outlasts(time.Now(), s) {
		t.Errorf("for an old connection %v, for a new one %v", outlasts(time.Time{}, s), outlasts(time.Now(), s))
	}
	s.last = s.last.Add(-2 * newStretch)
	s.add(time.Now(), false)
	if outlasts(time.Time{}, s) {
		t.Error("a failure of long ago counts")
	}
}

// TestFarServer: on a long way a sign of life takes long.
func TestFarServer(t *testing.T) {
	k := &keeper{way: 700 * time.Millisecond}
	if d := k.patience(); d != 2800*time.Millisecond {
		t.Errorf("patience is %v", d)
	}
	if k.way = time.Millisecond; k.patience() != pongWithin {
		t.Errorf("patience is %v", k.patience())
	}
}
