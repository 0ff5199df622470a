package tenure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
)

// present returns the answers of the candidates, by ID.
func (s *scene) present() map[string]admin.Member {
	s.Helper()
	all, err := driver.AbilitiesOf(s.store).Presence.Candidates(s.Context(), key)
	s.is("Candidates", err, nil)
	answers := map[string]admin.Member{}
	for _, text := range all {
		var m admin.Member
		if err := json.Unmarshal(text, &m); err != nil || len(text) > driver.MaxPresence || bytes.Contains(text, []byte("\n")) {
			s.Errorf("the answer of %d bytes is no Member: %v, %s", len(text), err, text)
		}
		answers[m.ID] = m
	}
	return answers
}

func TestAnswersOfCandidates(t *testing.T) {
	scenes{
		"a candidate answers while it takes part, an observer does not": func(s *scene) {
			defer s.new("observer").observe()()
			a, _ := s.elect("a", func(c *tenure.Config) { c.Address = "10.0.0.1:80" })
			b := s.run("b", priority(-5))
			b.SetEligible(false)
			time.Sleep(lease + lease/7) // between two renewals
			all := s.present()
			if len(all) != 2 {
				s.Fatalf("the candidates are %+v", all)
			}
			if m := all["a"]; m.Election != key || m.State != string(tenure.StateLeader) || m.Address != "10.0.0.1:80" || !m.Eligible || m.LeaseMillis != lease.Milliseconds() {
				s.Errorf("the leader answers %+v", m)
			}
			m, own := all["b"], b.Member()
			own.LastContact = own.LastContact.UTC()
			if m.State != string(tenure.StateCandidate) || m.Eligible || m.Priority != -5 || m.Problem != "" || time.Since(m.LastContact) > lease || m != own {
				s.Errorf("the standby answers %+v", m)
			}
			if m.Incarnation == all["a"].Incarnation || a.Status().Leader.Incarnation != all["a"].Incarnation {
				s.Errorf("the incarnations are %q and %q", all["a"].Incarnation, m.Incarnation)
			}
			for left, p := range []*process{b, a} {
				_ = p.end()
				synctest.Wait() // the announcement is withdrawn
				if all := s.present(); len(all) != 1-left {
					s.Errorf("after %s has left: %+v", p.ID(), all)
				}
			}
		},
		"a long answer loses its problem and its address first": func(s *scene) {
			s.elect("leader")
			s = s.over(newReadable(s.store, errUnfit))
			s.run(strings.Repeat("<", 100), func(c *tenure.Config) { c.Address = strings.Repeat("x", 256) })
			s.run(strings.Repeat("<", 256))
			time.Sleep(2 * lease)
			all := s.present()
			m := all[strings.Repeat("<", 100)]
			if len(all) != 2 || m.State != string(tenure.StateCandidate) || m.Address != "" || m.Problem != "" {
				s.Errorf("got %d answers, with %+v", len(all), m)
			}
		},
		// A campaign that begins while the announcement of the last one is given up is announced.
		"an announcement that was given up": func(s *scene) {
			link := announced(s.store, func(ctx context.Context, nth int64) (error, bool) {
				if nth > 1 {
					return nil, false
				}
				<-ctx.Done()
				time.Sleep(time.Second)
				return context.Cause(ctx), true
			})
			a := s.over(link).run("a")
			synctest.Wait()
			_ = a.end()
			a.start(holdOn)
			time.Sleep(lease)
			if all := s.present(); len(all) != 1 {
				s.Errorf("the candidates are %+v after %d calls", all, link.calls.Load())
			}
		},
	}.play(t, watched)
}

// announcer is a link whose announcements the test answers.
type announcer struct {
	hooked
	driver.Presence
	answer func(ctx context.Context, nth int64) (err error, ok bool)
	calls  atomic.Int64
}

func announced(store driver.Store, answer func(ctx context.Context, nth int64) (err error, ok bool)) *announcer {
	a := &announcer{Presence: driver.AbilitiesOf(store).Presence, answer: answer}
	a.Store = store
	a.able = func(all *driver.Abilities) { all.Presence = a }
	return a
}

func (a *announcer) Announce(ctx context.Context, key string, who func() []byte) (func(), error) {
	if err, ok := a.answer(ctx, a.calls.Add(1)); ok {
		return nil, err
	}
	return a.Presence.Announce(ctx, key, who)
}

// A candidate that cannot be announced takes part all the same, and one line of the log says so.
func TestFailedAnnouncementDisturbsNothing(t *testing.T) {
	all := scenes{}
	for why, c := range map[string]struct {
		err   error
		lines int
	}{"denied": {driver.ErrDenied, 1}, "silent": {context.DeadlineExceeded, 1}, "not supported": {errors.ErrUnsupported, 0}} {
		all[why] = func(s *scene) {
			var log logBuffer
			link := announced(s.store, func(ctx context.Context, _ int64) (error, bool) {
				if why == "silent" {
					<-ctx.Done()
				}
				return c.err, true
			})
			g := s.over(link).group("a", log.in)
			first := g.new().start(holdOn)
			first.leads(lease)
			for i := range 3 {
				one := g.new(fmt.Sprint("other", i)).start(holdOn)
				one.leads(2 * lease)
				synctest.Wait() // it is announced
				one.stop()
			}
			time.Sleep(lease)
			first.stop()
			synctest.Wait()
			if lines := log.lines("observers cannot see this candidate"); len(lines) != c.lines {
				s.Errorf("%d lines; want %d:\n%s", len(lines), c.lines, lines)
			}
			if n := link.calls.Load(); n != 4 {
				s.Errorf("it was called %d times for 4 campaigns", n)
			}
		}
	}
	all.play(t, watched)
}
