package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
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

// Events name the term that they are about.
func TestTermsOfEvents(t *testing.T) {
	scenes{
		// None, once this process campaigns again.
		"trouble names the open term": func(s *scene) {
			f, far := s.faulty()
			a, term := far.elect("a")
			f.Next(faults.Write, faults.Fail)
			time.Sleep(lease)
			f.Partition()
			time.Sleep(5 * lease)
			_ = a.end()
			synctest.Wait()
			open, seen := uint64(0), make(map[uint64]int)
			for _, e := range a.events {
				switch e.Kind {
				case tenure.EventElected:
					open = term.Token()
				case tenure.EventCandidate:
					open = 0
				case tenure.EventTrouble:
					seen[open]++
					if e.Term != open {
						s.Errorf("trouble (%v) has term %d, want %d", e.Cause, e.Term, open)
					}
				}
			}
			if seen[term.Token()] == 0 || seen[0] == 0 {
				s.Errorf("trouble by open term: %v", seen)
			}
		},
		"so does that of a watch that fails": func(s *scene) {
			a, term := s.over(unwatchable(newRemote(0))).elect("a")
			time.Sleep(lease)
			_ = a.end()
			synctest.Wait()
			if all := a.all(tenure.EventTrouble); len(all) == 0 || all[len(all)-1].Term != term.Token() {
				s.Errorf("the trouble of term %d is %+v", term.Token(), all)
			}
		},
		"an alarm names the term that it may end": func(s *scene) {
			a, term := s.elect("a")
			s.store.Delete(key)
			a.leads(3 * lease)
			if e := a.reports(tenure.EventAlarm, damage(driver.Deleted)); e.Term != term.Token() {
				s.Errorf("alarm %+v, want term %d", e, term.Token())
			}
		},
		"a failure names the term of its work": func(s *scene) {
			a := s.new("a").start(func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				return errBroken
			})
			term := a.leads()
			a.handOver("")
			a.leads(3 * lease)
			if e := a.reports(tenure.EventFailed, errBroken); e.Term != term.Token() {
				s.Errorf("failed %+v, want term %d", e, term.Token())
			}
		},
	}.play(t)
}

// The work's own error is reported although its term was lost. The loss of the term is not an error
// of the work.
func TestErrorAfterALossIsReported(t *testing.T) {
	full := errors.New("the disk is full")
	all := scenes{}
	for why, c := range map[string]struct {
		err      func(ctx context.Context, t *tenure.Term) error
		reported bool
	}{
		"an error of its own":    {func(context.Context, *tenure.Term) error { return full }, true},
		"nothing":                {func(context.Context, *tenure.Term) error { return nil }, false},
		"the end of the context": {func(ctx context.Context, _ *tenure.Term) error { return ctx.Err() }, false},
		"its cause":              {func(ctx context.Context, _ *tenure.Term) error { return context.Cause(ctx) }, false},
		"that the term is over":  {func(_ context.Context, t *tenure.Term) error { return fmt.Errorf("write: %w", t.Err()) }, false},
		"it declines":            {func(context.Context, *tenure.Term) error { return tenure.ErrDecline }, false},
	} {
		all[why] = func(s *scene) {
			f, far := s.faulty()
			var log logBuffer
			a := far.new("a", log.in).start(func(ctx context.Context, term *tenure.Term) error {
				<-ctx.Done()
				return c.err(ctx, term)
			})
			a.leads()
			f.Partition()
			time.Sleep(time.Minute)
			lines := log.lines("tenure: failed")
			if len(lines) > 0 != c.reported {
				s.Errorf("the log says %q", lines)
			}
			if c.reported {
				a.reports(tenure.EventFailed, full)
			} else {
				a.hides(tenure.EventFailed)
			}
		}
	}
	all.play(t, watched)
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

// in makes an election write to this log.
func (p *logBuffer) in(c *tenure.Config) { c.Logger = slog.New(slog.NewTextHandler(p, nil)) }

// away is a store that cannot be reached at times. Each attempt uses another port.
type away struct {
	hooked
	mu    sync.Mutex
	cause error // nil: it can be reached
	port  int
}

func newAway() *away {
	a := &away{}
	a.Store = memory.NewPolled()
	a.before = func(_ context.Context, _ faults.Op, key string, _ []byte) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.cause == nil {
			return nil
		}
		a.port++
		return fmt.Errorf("away: read %s: read tcp 127.0.0.1:%d->127.0.0.1:4222: %w", key, 50000+a.port, a.cause)
	}
	return a
}

func (a *away) be(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = cause
}

func TestLog(t *testing.T) {
	const trouble = "tenure: trouble"
	scenes{
		// One cause is logged once, and then with a count at growing intervals, also for the
		// elections of a group. A new cause, or one that had ended, is logged at once.
		"repeated trouble is logged less often": func(s *scene) {
			store := newAway()
			var log logBuffer
			for _, p := range s.over(store).group("a", log.in).many(2) {
				p.start(holdOn).leads()
			}
			reset, refused := errors.New("connection reset"), errors.New("connection refused")

			store.be(reset)
			time.Sleep(time.Hour)
			lines := log.lines(trouble)
			// The log has lines at 0, 10, 30, 70, 150, 310, 630, 1270 and 2550 s or soon after,
			// because reads and writes fail.
			if n := len(lines); n < 9 || n > 20 {
				s.Errorf("%d lines in an hour:\n%s", n, strings.Join(lines, ""))
			}
			if strings.Contains(lines[0], "times=") || !strings.Contains(lines[len(lines)-1], "times=") {
				s.Errorf("the first and the last line are\n%s%s", lines[0], lines[len(lines)-1])
			}
			store.be(refused)
			time.Sleep(time.Minute) // less than the time until the next line of the former cause
			if len(log.lines("connection refused")) == 0 {
				s.Error("another cause is not logged")
			}
			store.be(nil)
			time.Sleep(5 * time.Minute)
			const reads = ": read: "
			before := len(log.lines(reads))
			store.be(reset)
			time.Sleep(time.Minute)
			if len(log.lines(reads)) == before {
				s.Error("the same cause is not logged when it comes back")
			}
		},
		"each trouble is an event all the same": func(s *scene) {
			store := newAway()
			store.be(io.EOF)
			a := s.over(store).run("a")
			time.Sleep(time.Minute)
			_ = a.end()
			if n := len(a.all(tenure.EventTrouble)); n < 10 {
				s.Errorf("%d events in a minute", n)
			}
		},
		// Alarms with one cause, such as a record that is malformed again and again, are limited
		// like trouble.
		"repeated alarms are logged less often": func(s *scene) {
			var log logBuffer
			a := s.run("a", log.in)
			for i := range 120 {
				s.put(`{"incarnation":"x","leaseMillis":0,"nonce":"%d"}`, i)
				time.Sleep(time.Second)
			}
			_ = a.end()
			lines, alarms := log.lines("tenure: alarm"), len(a.all(tenure.EventAlarm))
			if n := len(lines); alarms < 100 || n < 3 || n > 6 || !strings.Contains(lines[n-1], "times=") {
				s.Errorf("%d alarms, and the log says\n%s", alarms, strings.Join(lines, ""))
			}
		},
		// A line names the leader, or says that nobody leads. It has no empty leader.
		"a line says that nobody leads": func(s *scene) {
			for field, handler := range map[string]func(*logBuffer) slog.Handler{
				`leader=`:   func(b *logBuffer) slog.Handler { return slog.NewTextHandler(b, nil) },
				`"leader":`: func(b *logBuffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
			} {
				var log logBuffer
				a, _ := s.elect("a")
				b := s.new("b", func(c *tenure.Config) { c.Logger = slog.New(handler(&log)) })
				b.SetEligible(false)
				b.start(holdOn)
				time.Sleep(lease)
				_ = a.end()
				time.Sleep(lease)
				_ = b.end()
				synctest.Wait()
				vacant, led := log.lines("tenure: nobody leads"), log.lines("tenure: leader")
				if len(vacant) == 0 || len(led) != 1 || strings.Contains(strings.Join(vacant, ""), field) || !strings.Contains(led[0], field) {
					s.Errorf("nobody leads:\n%s\na leads:\n%s", strings.Join(vacant, ""), strings.Join(led, ""))
				}
			}
		},
	}.play(t, watched)
}

// logsWaits runs a candidate "a" for a minute, and checks the lines in its log about waits: one for
// each of these lists of texts.
func (s *scene) logsWaits(lines [][]string, change ...set) {
	s.Helper()
	var log logBuffer
	s.run("a", append([]set{log.in}, change...)...)
	time.Sleep(time.Minute)
	log.hasWaits(s, lines...)
}

func (p *logBuffer) hasWaits(s *scene, lines ...[]string) {
	s.Helper()
	got := p.lines("tenure: waiting")
	if len(got) != len(lines) {
		s.Fatalf("%d lines, want %d:\n%s", len(got), len(lines), strings.Join(got, ""))
	}
	for i, texts := range lines {
		for _, text := range texts {
			if !strings.Contains(got[i], text) {
				s.Errorf("the line does not have %q:\n%s", text, got[i])
			}
		}
		if strings.Contains(got[i], "level=WARN") == strings.Contains(got[i], "until=") {
			s.Errorf("only a wait without an end is a warning:\n%s", got[i])
		}
	}
}

// until is the end of a wait that begins now, in a log. Clocks may differ by 1 %.
func until(lease time.Duration) string {
	return time.Now().Add(lease + lease/100).Format("until=2006-01-02T15:04:05.000")
}

func TestWaitsAreExplained(t *testing.T) {
	const held = `{"leaderID":%q,"incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000%s}`
	released := fmt.Sprintf(held, "b", `,"released":true`)
	all := scenes{
		"none, if it leads or follows at once": func(s *scene) {
			s.logsWaits(nil)
			s.logsWaits(nil, func(c *tenure.Config) { c.ID = "b" })
		},
		// While nobody leads for a short time, as in a hand-over, it does not matter who is
		// eligible.
		"an ineligible candidate explains a long vacancy": func(s *scene) {
			var log logBuffer
			a := s.new("a", log.in)
			a.SetEligible(false)
			a.start(holdOn)
			time.Sleep(lease - time.Second)
			log.hasWaits(s)
			time.Sleep(2 * lease)
			log.hasWaits(s, []string{"level=WARN", "reason=ineligible"})
		},
		// A release that may not be the last record gives no right to claim.
		"a release is unproven": func(s *scene) {
			s.put("%s", released)
			unproven := &hooked{Store: s.store, read: func(e *driver.Entry) {
				e.Unproven = strings.Contains(string(e.Value), `"leaderID":"b"`)
			}}
			s.over(unproven).logsWaits([][]string{{"level=INFO", "reason=unproven", until(20 * time.Second)}})
		},
		"namesakes": func(s *scene) {
			s.run("a")
			synctest.Wait()
			s.logsWaits([][]string{{"reason=same-id", "until="}, {"level=WARN", "reason=same-id", "give each its own"}})
		},
		// It is logged once for a leader, and again for the next one, whose first record is no
		// renewal.
		"leaders with another lease": func(s *scene) {
			go func() {
				for seq, leader := range []string{"b", "b", "b", "c", "c", "c"} {
					term := 3 + strings.Index("bc", leader)
					s.put(`{"leaderID":%q,"incarnation":%[1]q,"nonce":"%d","term":%d,"seq":%[2]d,"leaseMillis":3000}`, leader, seq+1, term)
					time.Sleep(time.Second)
				}
			}()
			const text = " has a lease of 3s, and this candidate one of 30s"
			s.logsWaits([][]string{
				{"level=WARN", "reason=other-lease", "the leader b" + text},
				{"level=WARN", "reason=other-lease", "the leader c" + text},
			}, leaseOf(30*time.Second))
		},
		"the elections of a group share the lines": func(s *scene) {
			var log logBuffer
			g := s.group("a", log.in)
			all := g.many(20)
			for _, e := range all {
				s.store.Delete(e.Name())
			}
			end := g.joinAll(all, &termCounter{})
			time.Sleep(lease / 2)
			log.hasWaits(s, []string{"reason=vacant"})
			end()
		},
	}
	for what, c := range map[string]struct {
		value  string
		change []set
		lease  time.Duration // of a wait that ends; 0: it does not end
		texts  []string
	}{
		"a vacant record may hide a leader": {`{"term":3,"seq":1,"leaseMillis":20000,"nonce":"n"}`, nil,
			20 * time.Second, []string{"reason=vacant", "no record shows which candidate led last"}},
		"so may a malformed one": {`{"leaderID":"b","term":7,"leaseMillis":20000,"incarnation":"i"}`, nil,
			20 * time.Second, []string{"reason=malformed", "the record is malformed"}},
		"an earlier run may have this ID": {fmt.Sprintf(held, "a", ""), nil,
			20 * time.Second, []string{"reason=same-id", "an earlier run of it"}},
		"foreign bytes are not overwritten": {"hello", nil,
			0, []string{"reason=foreign", "until an operator removes them"}},
		"no nominee is there": {released, []set{nominated(&manualNominator{}), nomineeOnly},
			0, []string{"reason=not-nominee", "not the nominee"}},
	} {
		all[what] = func(s *scene) {
			s.put("%s", c.value)
			level := []string{"level=WARN"}
			if c.lease > 0 {
				level = []string{"level=INFO", until(c.lease)}
			}
			s.logsWaits([][]string{slices.Concat(c.texts, level)}, c.change...)
		}
	}
	all.play(t, watched)
}

// An empty store gets a vacant record at once, and then the reason is logged.
func TestWaitInAnEmptyStoreIsExplainedAtOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.store.Delete(key)
		var log logBuffer
		end := until(lease)
		f, far := s.faulty()
		hinting := &hooked{Store: f, read: func(e *driver.Entry) {
			if e.Absent() {
				e.Notice = fmt.Errorf("%w: be pristine", driver.ErrUnwritten)
			}
		}}
		a := far.over(hinting).run("a", log.in)
		synctest.Wait()
		log.hasWaits(s, []string{end, "candidates wait for the longer of their lease and the record's", "; nothing was ever written: be pristine\""})
		time.Sleep(lease / 2)
		f.SetPlan(faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
		time.Sleep(lease / 2)
		f.SetPlan(faults.Plan{})
		time.Sleep(time.Minute)
		if n := len(a.all(tenure.EventWaiting)); n != 1 {
			s.Errorf("%d events, want 1", n)
		}
	})
}
