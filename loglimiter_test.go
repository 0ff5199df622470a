package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// logBuffer is a log that is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *logBuffer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// lines returns the lines that contain a text.
func (p *logBuffer) lines(part string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(p.text.String()) {
		if strings.Contains(line, part) {
			all = append(all, line)
		}
	}
	return all
}

func (p *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p, nil))
}

// away is a store that cannot be reached at times. Each attempt uses another port.
type away struct {
	driver.Store
	mu    sync.Mutex
	cause error // nil: it can be reached
	port  int
}

func (a *away) be(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = cause
}

func (a *away) fails(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cause == nil {
		return nil
	}
	a.port++
	return fmt.Errorf("away: read %s: read tcp 127.0.0.1:%d->127.0.0.1:4222: %w", key, 50000+a.port, a.cause)
}

func (a *away) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := a.fails(key); err != nil {
		return driver.Entry{}, err
	}
	return a.Store.Read(ctx, key)
}

func (a *away) CompareAndSwap(ctx context.Context, key string, v driver.Version, value []byte) (driver.Version, error) {
	if err := a.fails(key); err != nil {
		return "", err
	}
	return a.Store.CompareAndSwap(ctx, key, v, value)
}

// One cause is logged once, and then with a count at growing intervals, also for the elections of a
// group. A new cause, or one that had ended, is logged at once.
func TestRepeatedTroubleIsLoggedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &away{Store: memory.NewPolled()}
		var log logBuffer
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Logger = log.logger() })
		a, b := start(t, g.election(), holdOn), start(t, g.election("other"), holdOn)
		within(t, time.Minute, a.won, "term of one")
		within(t, time.Minute, b.won, "term of the other")
		const trouble = "tenure: trouble"
		reset, refused := errors.New("connection reset"), errors.New("connection refused")

		store.be(reset)
		time.Sleep(time.Hour)
		lines := log.lines(trouble)
		// The log has lines at 0, 10, 30, 70, 150, 310, 630, 1270 and 2550 s or soon after, because
		// reads and writes fail.
		if n := len(lines); n < 9 || n > 20 {
			t.Errorf("%d lines in an hour:\n%s", n, strings.Join(lines, ""))
		}
		if strings.Contains(lines[0], "times=") || !strings.Contains(lines[len(lines)-1], "times=") {
			t.Errorf("the first and the last line are\n%s%s", lines[0], lines[len(lines)-1])
		}
		store.be(refused)
		time.Sleep(time.Minute) // less than the time until the next line of the former cause
		if len(log.lines("connection refused")) == 0 {
			t.Error("another cause is not logged")
		}
		store.be(nil)
		time.Sleep(5 * time.Minute)
		const reads = ": read: "
		before := len(log.lines(reads))
		store.be(reset)
		time.Sleep(time.Minute)
		if len(log.lines(reads)) == before {
			t.Error("the same cause is not logged when it comes back")
		}
	})
}

// OnEvent is called for each failure all the same.
func TestEachTroubleIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &away{Store: memory.NewPolled(), cause: io.EOF}
		events := 0
		e := mustNew(t, store, "a", func(c *tenure.Config) {
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventTrouble {
					events++
				}
			}
		})
		a := start(t, e, holdOn)
		time.Sleep(time.Minute)
		if _ = a.end(t); events < 10 {
			t.Errorf("%d events in a minute", events)
		}
	})
}

// The work's own error is reported although its term was lost. The loss of the term is not an error
// of the work.
func TestErrorAfterALossIsReported(t *testing.T) {
	full := errors.New("the disk is full")
	for _, c := range []struct {
		why      string
		err      func(ctx context.Context, t *tenure.Term) error
		reported bool
	}{
		{"an error of its own", func(context.Context, *tenure.Term) error { return full }, true},
		{"nothing", func(context.Context, *tenure.Term) error { return nil }, false},
		{"the end of the context", func(ctx context.Context, _ *tenure.Term) error { return ctx.Err() }, false},
		{"its cause", func(ctx context.Context, _ *tenure.Term) error { return context.Cause(ctx) }, false},
		{"that the term is over", func(_ context.Context, t *tenure.Term) error { return fmt.Errorf("write: %w", t.Err()) }, false},
		{"it declines", func(context.Context, *tenure.Term) error { return tenure.ErrDecline }, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &away{Store: memory.NewPolled()}
				var d diary
				var log logBuffer
				e := mustNew(t, store, "a", func(cfg *tenure.Config) { cfg.OnEvent, cfg.Logger = d.note, log.logger() })
				a := start(t, e, func(ctx context.Context, term *tenure.Term) error {
					<-ctx.Done()
					return c.err(ctx, term)
				})
				within(t, time.Minute, a.won, "term")
				store.be(io.EOF)
				time.Sleep(time.Minute)
				event, lines := d.find(tenure.EventFailed), log.lines("tenure: failed")
				if reported := event != nil; reported != c.reported || len(lines) > 0 != c.reported {
					t.Errorf("the event is %v, the log says %q", event, lines)
				}
				if c.reported && !errors.Is(event.Cause, full) {
					t.Errorf("the cause is %v", event.Cause)
				}
			})
		})
	}
}

// Alarms with one cause, such as a record that is malformed again and again, are limited like
// trouble.
func TestRepeatedAlarmsAreLoggedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var log logBuffer
		alarms := 0
		e := mustNew(t, store, "a", func(c *tenure.Config) {
			c.Logger = log.logger()
			c.OnEvent = func(e tenure.Event) {
				if e.Kind == tenure.EventAlarm {
					alarms++
				}
			}
		})
		a := start(t, e, holdOn)
		for i := range 120 {
			store.Put(e.Name(), fmt.Appendf(nil, `{"incarnation":"x","leaseMillis":0,"nonce":"%d"}`, i))
			time.Sleep(time.Second)
		}
		_ = a.end(t)
		lines := log.lines("tenure: alarm")
		if n := len(lines); alarms < 100 || n < 3 || n > 6 || !strings.Contains(lines[n-1], "times=") {
			t.Errorf("%d alarms, and the log says\n%s", alarms, strings.Join(lines, ""))
		}
	})
}
