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
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// A log line names the leader, or says that nobody leads. It has no empty leader.
func TestLogSaysThatNobodyLeads(t *testing.T) {
	for field, handler := range map[string]func(*logBuffer) slog.Handler{
		`leader=`:   func(b *logBuffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		`"leader":`: func(b *logBuffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		t.Run(field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logBuffer
				store := memory.New()
				a := start(t, mustNew(t, store, "a", nil), holdOn)
				standby := mustNew(t, store, "b", func(c *tenure.Config) { c.Logger = slog.New(handler(&log)) })
				standby.SetEligible(false)
				b := start(t, standby, holdOn)
				within(t, 3*lease, a.won, "term")
				time.Sleep(lease)
				_ = a.end(t)
				time.Sleep(lease)
				_ = b.end(t)
				synctest.Wait()
				vacant, led := log.lines("tenure: nobody leads"), log.lines("tenure: leader")
				if len(vacant) == 0 || len(led) != 1 || strings.Contains(strings.Join(vacant, ""), field) || !strings.Contains(led[0], field) {
					t.Errorf("nobody leads:\n%s\na leads:\n%s", strings.Join(vacant, ""), strings.Join(led, ""))
				}
			})
		})
	}
}

// Trouble names the open term. It names none once this process campaigns again.
func TestTroubleNamesTheOpenTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := faults.New(memory.NewPolled(), 1, faults.Plan{})
		var events diary
		r := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
		token := within(t, 3*lease, r.won, "term").Token()
		store.Next(faults.Write, faults.Fail)
		time.Sleep(lease)
		store.Partition()
		time.Sleep(5 * lease)
		_ = r.end(t)
		synctest.Wait()
		open, seen := uint64(0), make(map[uint64]int)
		for _, e := range events.events {
			switch e.Kind {
			case tenure.EventElected:
				open = token
			case tenure.EventCandidate:
				open = 0
			case tenure.EventTrouble:
				seen[open]++
				if e.Term != open {
					t.Errorf("trouble (%v) has term %d, want %d", e.Cause, e.Term, open)
				}
			}
		}
		if seen[token] == 0 || seen[0] == 0 {
			t.Errorf("trouble by open term: %v", seen)
		}
	})
}

// A watch that fails while this process leads is trouble of its term.
func TestTroubleOfAWatchNamesTheOpenTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events diary
		r := start(t, mustNew(t, unwatchable{far(0)}, "a", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
		token := within(t, 3*lease, r.won, "term").Token()
		time.Sleep(lease)
		_ = r.end(t)
		synctest.Wait()
		last := uint64(0)
		for _, e := range events.events {
			if e.Kind == tenure.EventTrouble {
				last = e.Term
			}
		}
		if last != token {
			t.Errorf("the last trouble has term %d, want %d", last, token)
		}
	})
}

// An alarm names the term that is open when it occurs, and which it may end.
func TestAlarmNamesTheOpenTerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		r := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note }), holdOn)
		token := within(t, 3*lease, r.won, "term").Token()
		store.Delete(key)
		within(t, 3*lease, r.won, "second term")
		if e := events.find(tenure.EventAlarm); e == nil || e.Term != token {
			t.Errorf("alarm %+v, want term %d", e, token)
		}
	})
}

// An error of lead after a hand-over is about the term of that work.
func TestFailureNamesItsTerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		var events diary
		failure := errors.New("boom")
		r := start(t, mustNew(t, store, "a", func(c *tenure.Config) { c.OnEvent = events.note }),
			func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				return failure
			})
		token := within(t, 3*lease, r.won, "term").Token()
		handOver(t, r.election, "")
		within(t, 3*lease, r.won, "second term")
		if e := events.find(tenure.EventFailed); e == nil || e.Term != token || !errors.Is(e.Cause, failure) {
			t.Errorf("failed %+v, want term %d", e, token)
		}
	})
}

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

// waits runs a candidate "a" on a store for a minute, and returns the lines in its log about waits.
func waits(t *testing.T, store driver.Store, change func(*tenure.Config)) []string {
	t.Helper()
	var log logBuffer
	start(t, mustNew(t, store, "a", func(c *tenure.Config) {
		c.Logger = log.logger()
		if change != nil {
			change(c)
		}
	}), holdOn)
	time.Sleep(time.Minute)
	return log.lines("tenure: waiting")
}

// mustBeOne checks that there is one line, with all of these texts.
func mustBeOne(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(lines), strings.Join(lines, ""))
	}
	for _, text := range texts {
		if !strings.Contains(lines[0], text) {
			t.Errorf("the line does not have %q:\n%s", text, lines[0])
		}
	}
}

// until is the end of a wait that begins now, in a log. Clocks may differ by 1 %.
func until(lease time.Duration) string {
	return time.Now().Add(lease + lease/100).Format("until=2006-01-02T15:04:05.000")
}

func TestWaitsAreExplained(t *testing.T) {
	const released = `{"leaderID":"b","incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000,"released":true}`
	for _, c := range []struct {
		what   string
		value  string
		change func(*tenure.Config)
		lease  time.Duration // of a wait that ends; 0: it does not end
		texts  []string
	}{
		{"a vacant record may hide a leader", `{"term":3,"seq":1,"leaseMillis":20000,"nonce":"n"}`, nil,
			20 * time.Second, []string{"level=INFO", "reason=vacant", "no record shows which candidate led last"}},
		{"so may a malformed one", `{"leaderID":"b","term":7,"leaseMillis":20000,"incarnation":"i"}`, nil,
			20 * time.Second, []string{"level=INFO", "reason=malformed", "the record is malformed"}},
		{"an earlier run may have this ID", `{"leaderID":"a","incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000}`, nil,
			20 * time.Second, []string{"level=INFO", "reason=same-id", "an earlier run of it"}},
		{"foreign bytes are not overwritten", "hello", nil,
			0, []string{"level=WARN", "reason=foreign", "until an operator removes them"}},
		{"no nominee is there", released, func(c *tenure.Config) { c.Nominator, c.NomineeOnly = &manualNominator{}, true },
			0, []string{"level=WARN", "reason=not-nominee", "not the nominee"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				store.Put(key, []byte(c.value))
				if c.lease > 0 {
					c.texts = append(c.texts, until(c.lease))
				}
				lines := waits(t, store, c.change)
				mustBeOne(t, lines, c.texts...)
				if c.lease == 0 && strings.Contains(lines[0], "until=") {
					t.Errorf("this wait has no end:\n%s", lines[0])
				}
			})
		})
	}
}

// An empty store gets a vacant record at once, and then the reason is logged.
func TestWaitInAnEmptyStoreIsExplainedAtOnce(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		store.Delete(key)
		var log logBuffer
		var events diary
		end := until(lease)
		flaky := &away{Store: store}
		start(t, mustNew(t, hinting{flaky, "be pristine"}, "a", func(c *tenure.Config) {
			c.Logger, c.OnEvent = log.logger(), events.note
		}), holdOn)
		synctest.Wait()
		mustBeOne(t, log.lines("tenure: waiting"), end, "candidates wait one lease", "; be pristine\"")
		time.Sleep(lease / 2)
		flaky.be(errors.New("i/o timeout"))
		time.Sleep(lease / 2)
		flaky.be(nil)
		time.Sleep(time.Minute)
		if n := events.count(tenure.EventWaiting); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
	})
}

func TestElectionWithoutAWaitExplainsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		if lines := waits(t, store, nil); len(lines) > 0 {
			t.Errorf("it leads at once and says\n%s", lines)
		}
		if lines := waits(t, store, func(c *tenure.Config) { c.ID = "b" }); len(lines) > 0 {
			t.Errorf("another one leads and it says\n%s", lines)
		}
	})
}

// While nobody leads for a short time, as in a hand-over, it does not matter who is eligible.
func TestIneligibleCandidateExplainsALongVacancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var log logBuffer
		e := mustNew(t, store, "a", func(c *tenure.Config) { c.Logger = log.logger() })
		e.SetEligible(false)
		start(t, e, holdOn)
		time.Sleep(lease - time.Second)
		if lines := log.lines("tenure: waiting"); len(lines) > 0 {
			t.Errorf("it says at once\n%s", lines)
		}
		time.Sleep(2 * lease)
		mustBeOne(t, log.lines("tenure: waiting"), "level=WARN", "reason=ineligible")
	})
}

// A release that may not be the last record gives no right to claim.
func TestUnprovenReleaseIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := unproven{memory.New()}
		store.Put(key, []byte(`{"leaderID":"b","incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000,"released":true}`))
		end := until(20 * time.Second)
		mustBeOne(t, waits(t, store, nil), "level=INFO", "reason=unproven", end)
	})
}

func TestNamesakesAreReported(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		start(t, mustNew(t, store, "a", nil), holdOn)
		synctest.Wait()
		lines := waits(t, store, nil)
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2:\n%s", len(lines), strings.Join(lines, ""))
		}
		mustBeOne(t, lines[:1], "level=INFO", "reason=same-id", "until=")
		mustBeOne(t, lines[1:], "level=WARN", "reason=same-id", "give each its own")
	})
}

// It is logged once for a leader, and again for the next one, whose first record is no renewal.
func TestLeadersWithAnotherLeaseAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		go func() {
			for seq, leader := range []string{"b", "b", "b", "c", "c", "c"} {
				term := 3 + strings.Index("bc", leader)
				store.Put(key, fmt.Appendf(nil, `{"leaderID":%q,"incarnation":%[1]q,"nonce":"%d","term":%d,"seq":%[2]d,"leaseMillis":3000}`, leader, seq+1, term))
				time.Sleep(time.Second)
			}
		}()
		lines := waits(t, store, func(c *tenure.Config) { c.Lease = 30 * time.Second })
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2:\n%s", len(lines), strings.Join(lines, ""))
		}
		const text = " has a lease of 3s, and this candidate one of 30s"
		mustBeOne(t, lines[:1], "level=WARN", "reason=other-lease", "the leader b"+text)
		mustBeOne(t, lines[1:], "level=WARN", "reason=other-lease", "the leader c"+text)
	})
}

// The elections of a group share the lines.
func TestWaitsOfAGroupAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var log logBuffer
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Logger = log.logger() })
		all := g.elections(20)
		for _, e := range all {
			store.Delete(e.Name())
		}
		ctx, stop := context.WithCancel(t.Context())
		ends := g.joinAll(ctx, all, &termCounter{})
		time.Sleep(lease / 2)
		mustBeOne(t, log.lines("tenure: waiting"), "reason=vacant")
		stop()
		for _, ended := range ends {
			<-ended
		}
	})
}

// hinting is a store with a hint.
type hinting struct {
	driver.Store
	hint string
}

func (h hinting) PristineHint() string { return h.hint }

// unproven is a store that marks the states that an operator put there.
type unproven struct{ *memory.Store }

func (u unproven) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := u.Store.Read(ctx, key)
	e.Unproven = strings.Contains(string(e.Value), `"leaderID":"b"`)
	return e, err
}
