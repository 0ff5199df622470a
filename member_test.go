package tenure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// present returns the answers of the candidates, by ID.
func present(t *testing.T, store driver.Presence) map[string]tenure.Member {
	t.Helper()
	all, err := store.Candidates(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]tenure.Member{}
	for _, text := range all {
		var m tenure.Member
		if err := json.Unmarshal(text, &m); err != nil || len(text) > driver.MaxPresence || bytes.Contains(text, []byte("\n")) {
			t.Errorf("the answer of %d bytes is no Member: %v, %s", len(text), err, text)
		}
		answers[m.ID] = m
	}
	return answers
}

// A candidate answers while it campaigns or leads. An observer does not.
func TestCandidatesAnswerWhileTheyTakePart(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		there := store.(driver.Presence)
		observer := mustNew(t, store, "observer", nil)
		defer observer.Observe()()
		a, _ := elect(t, store, "a", func(c *tenure.Config) { c.Address = "10.0.0.1:80" })
		b := start(t, mustNew(t, store, "b", func(c *tenure.Config) { c.Priority = -5 }), holdOn)
		b.election.SetEligible(false)
		time.Sleep(lease + lease/7) // between two renewals
		all := present(t, there)
		if len(all) != 2 {
			t.Fatalf("the candidates are %+v", all)
		}
		if m := all["a"]; m.Election != key || m.State != tenure.StateLeader || m.Address != "10.0.0.1:80" || !m.Eligible || m.LeaseMillis != lease.Milliseconds() {
			t.Errorf("the leader answers %+v", m)
		}
		m, own := all["b"], b.election.Member()
		own.LastContact = own.LastContact.UTC()
		if m.State != tenure.StateCandidate || m.Eligible || m.Priority != -5 || m.Problem != "" || time.Since(m.LastContact) > lease || m != own {
			t.Errorf("the standby answers %+v", m)
		}
		if m.Incarnation == all["a"].Incarnation || a.election.Status().Leader.Incarnation != all["a"].Incarnation {
			t.Errorf("the incarnations are %q and %q", all["a"].Incarnation, m.Incarnation)
		}
		a.stop()
		time.Sleep(lease)
		if all := present(t, there); len(all) != 1 {
			t.Errorf("after a has left: %+v", all)
		}
		b.stop()
		time.Sleep(lease)
		if all := present(t, there); len(all) != 0 {
			t.Errorf("after all have left: %+v", all)
		}
	})
}

// A long answer loses its problem and its address first.
func TestAnswersFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &readable{Store: memory.New()}
		elect(t, store.Store, "leader", nil)
		store.unfit = true
		store.forbidden.Store(true)
		start(t, mustNew(t, store, strings.Repeat("<", 100), func(c *tenure.Config) { c.Address = strings.Repeat("x", 256) }), holdOn)
		start(t, mustNew(t, store, strings.Repeat("<", 256), nil), holdOn)
		time.Sleep(2 * lease)
		all := present(t, store)
		m := all[strings.Repeat("<", 100)]
		if len(all) != 2 || m.State != tenure.StateCandidate || m.Address != "" || m.Problem != "" {
			t.Errorf("got %d answers, with %+v", len(all), m)
		}
	})
}

// unannounced is a store whose candidates cannot answer.
type unannounced struct {
	*memory.Store
	err    error
	hangs  bool
	called atomic.Int64
}

func (s *unannounced) Announce(ctx context.Context, _ string, _ func() []byte) (func(), error) {
	s.called.Add(1)
	if s.hangs {
		<-ctx.Done()
	}
	return nil, s.err
}

// A candidate that cannot be announced takes part all the same, and one line of the log says so.
func TestFailedAnnouncementDisturbsNothing(t *testing.T) {
	for why, c := range map[string]struct {
		err   error
		lines int
	}{"denied": {driver.ErrDenied, 1}, "silent": {context.DeadlineExceeded, 1}, "not supported": {errors.ErrUnsupported, 0}} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				store := &unannounced{Store: memory.New(), err: c.err, hangs: why == "silent"}
				g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				first := start(t, g.election(), holdOn)
				began := time.Now()
				within(t, 2*lease, first.won, "the term")
				if took := time.Since(began); took > lease {
					t.Errorf("it took %v", took)
				}
				for _, name := range slices.Repeat([]string{"other"}, 3) {
					one := start(t, g.election(name+t.Name()), holdOn)
					within(t, 2*lease, one.won, "another term")
					one.stop()
				}
				time.Sleep(lease)
				first.stop()
				synctest.Wait()
				if n := strings.Count(log.String(), "observers cannot see this candidate"); n != c.lines {
					t.Errorf("%d lines; want %d:\n%s", n, c.lines, log.String())
				}
				if n := store.called.Load(); n != 4 {
					t.Errorf("it was called %d times for 4 campaigns", n)
				}
			})
		})
	}
}

// slowAnnouncer takes a second to give up its first announcement.
type slowAnnouncer struct {
	*memory.Store
	calls atomic.Int32
}

func (s *slowAnnouncer) Announce(ctx context.Context, k string, who func() []byte) (func(), error) {
	if s.calls.Add(1) > 1 {
		return s.Store.Announce(ctx, k, who)
	}
	<-ctx.Done()
	time.Sleep(time.Second)
	return nil, context.Cause(ctx)
}

// A campaign that begins while the announcement of the last one is given up is announced.
func TestCampaignAfterAnAnnouncementThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowAnnouncer{Store: memory.New()}
		e := mustNew(t, store, "a", nil)
		ctx, stop := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { first <- e.Run(ctx, holdOn) }()
		synctest.Wait()
		stop()
		<-first
		again, stop := context.WithCancel(t.Context())
		go func() { first <- e.Run(again, holdOn) }()
		time.Sleep(lease)
		if all := present(t, store); len(all) != 1 {
			t.Errorf("the candidates are %+v after %d calls", all, store.calls.Load())
		}
		stop()
		<-first
	})
}
