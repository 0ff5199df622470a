//go:build integration

package fenced_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// purge removes the messages on some subjects of the fence, by their last letter.
func (s *scene) purge(lanes string) {
	s.Helper()
	for subject := range s.subjects(fence + ".>") {
		if strings.Contains(lanes, subject[len(subject)-1:]) {
			must(s, s.stream().Purge(wait.Context(s), jetstream.WithPurgeSubject(subject)))
		}
	}
}

// TestLostFence: a leader that publishes restores all lost parts of the fence. An older leader
// whose clocks stood still is refused, and also before that, as long as the newer one has a single
// lane.
func TestLostFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose   func(*scene)
		before bool // the older leader also tries before the newer one has noticed the loss
	}{
		"all":  {func(s *scene) { s.purge("01234567") }, false},
		"most": {func(s *scene) { s.purge("0123456") }, true},
		"one":  {func(s *scene) { s.purge("3") }, true},
		"rolled up by others": {func(s *scene) {
			m := &nats.Msg{Subject: "payments.sum"}
			m.Header = nats.Header{"Nats-Rollup": {"all"}, fenced.Header: {"0"}}
			_, err := s.js.PublishMsg(wait.Context(s), m)
			must(s, err)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, func(c *jetstream.StreamConfig) { c.AllowRollup = true })
			old := s.elect("old")
			late := old.open()
			next := old.supplant("next")
			p := next.open()
			c.lose(s)
			if c.before {
				s.refuses(late)
			}
			before := s.stored()
			s.publish(p, "mine")
			s.refuses(late)
			s.expect(append(before, next.wrote("mine"))...)
		})
	}
}

// TestLostBesideMany: many calls find at the same time that the fence is gone, again and again.
func TestLostBesideMany(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	leader := s.elect("a")
	p := leader.open()
	var all sync.WaitGroup
	for w := range 12 {
		all.Go(func() {
			for i := range 20 {
				if _, err := p.Publish(wait.Context(t), message(fmt.Sprint(w, "/", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		if err := s.stream().Purge(wait.Context(t), jetstream.WithPurgeSubject(fence+".>")); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if n := len(s.stored()); n != 12*20 {
		t.Errorf("%d of %d are stored", n, 12*20)
	}
}

// TestStoreLost: an election whose store was lost counts terms from the beginning. The fence
// refuses the new leader with an error that gives the likely cause and the remedy. The remedy
// works.
func TestStoreLost(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	old := s.elect("old")
	next := old.supplant("next")
	late := next.open()
	s.publish(late, "before")
	s.election = deposed.NewElection(t, "billing")
	first := s.elect("first")
	_, err := fenced.Open(wait.Context(t), first.term, s.js, "PAYMENTS", fence)
	s.deposed(err)
	const remedy = "nats stream purge PAYMENTS --subject 'payments.fence.>'"
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	if first.term.Err() != nil || !says("store was lost") || !says(remedy) {
		t.Errorf("got the error %v", err)
	}
	must(t, next.term.Resign(wait.Context(t)))
	s.purge("01234567")
	s.publish(first.open(), "after")
	s.expect(next.wrote("before"), first.wrote("after"))
}

// TestRollUpAll: a message that would remove the fence with everything else is refused. A message
// that removes only those of its own subject is not.
func TestRollUpAll(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(c *jetstream.StreamConfig) { c.AllowRollup = true })
	leader := s.elect("a")
	p := leader.open()
	s.publish(p, "one", "two")
	m := message("sum")
	for _, header := range []nats.Header{
		{"Nats-Rollup": {"all"}}, {"Nats-Rollup": {"ALL"}}, {"nats-rollup": {"sub", " all "}},
	} {
		m.Header = header
		_, err := p.Publish(wait.Context(t), m)
		if !errors.Is(err, fenced.ErrHeader) || !strings.Contains(err.Error(), "sub") {
			t.Errorf("with %v: %v", header, err)
		}
	}
	m.Header = nats.Header{"Nats-Rollup": {"sub"}}
	_, err := p.Publish(wait.Context(t), m)
	must(t, err)
	s.expect(leader.wrote("sum"))
}
