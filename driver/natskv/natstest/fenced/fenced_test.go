//go:build integration

package fenced_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/internal/test/deposed"
	"github.com/tenure-go/tenure/internal/test/wait"
)

func TestPublish(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	leader := s.elect("a")
	p := leader.open()
	m := message("one")
	m.Header = nats.Header{"X": {"y"}, fenced.Header: {"7"}}
	ack, err := p.Publish(wait.Context(t), m)
	must(t, err)
	if ack.Stream != "PAYMENTS" || ack.Sequence <= p.Begin() {
		t.Errorf("acknowledged %+v, and the term begins at %d", ack, p.Begin())
	}
	if len(m.Header) != 2 || m.Header.Get(fenced.Header) != "7" {
		t.Errorf("the caller's message has changed: %v", m.Header)
	}
	s.publish(p, "two", "three")
	s.expect(leader.wrote("one"), leader.wrote("two"), leader.wrote("three"))
	if stored, err := s.stream().GetMsg(wait.Context(t), ack.Sequence); err != nil || stored.Header.Get("X") != "y" {
		t.Errorf("stored is %v, %v", stored, err)
	}
}

// A leader that knows that its term is over sends no request.
func TestEndedTermSendsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	leader := s.elect("a")
	p := leader.open()
	must(t, leader.term.Resign(wait.Context(t)))
	_, openErr := fenced.Open(wait.Context(t), leader.term, s.js, "PAYMENTS", fence)
	_, err := p.Publish(wait.Context(t), message("late"))
	for _, err := range []error{err, openErr} {
		if !errors.Is(err, tenure.ErrLost) || errors.Is(err, fenced.ErrFenced) || errors.Is(err, fenced.ErrUnknown) {
			t.Errorf("after the term: %v", err)
		}
	}
	s.expect()
}

func TestTooLate(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	leader := s.elect("a")
	if _, err := fenced.Open(wait.Context(t), leader.term, s.js, "PAYMENTS", fence, fenced.WithNeed(time.Hour)); !errors.Is(err, tenure.ErrTooLate) {
		t.Errorf("with an hour to go: %v", err)
	}
}

// The leader continues after any loss of the fence. Messages under a lost fence are refused.
func TestFenceThatIsGoneIsRestored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		lose   func(*scene, *fenced.Publisher)
	}{
		"purged": {nil, func(s *scene, _ *fenced.Publisher) {
			must(s, s.stream().Purge(wait.Context(s), jetstream.WithPurgeSubject(fence+".>")))
		}},
		"all purged": {nil, func(s *scene, _ *fenced.Publisher) {
			must(s, s.stream().Purge(wait.Context(s)))
		}},
		"rolled up by a message": {func(c *jetstream.StreamConfig) { c.AllowRollup = true }, func(s *scene, _ *fenced.Publisher) {
			m := message("sum")
			m.Header = nats.Header{"Nats-Rollup": {"all"}}
			if _, err := s.js.PublishMsg(wait.Context(s), m); err != nil {
				s.Fatal(err)
			}
		}},
		"deleted": {nil, func(s *scene, p *fenced.Publisher) {
			for at := range p.Begin() {
				_ = s.stream().DeleteMsg(wait.Context(s), at+1)
			}
		}},
		"crowded out": {func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }, func(s *scene, p *fenced.Publisher) {
			for i := range 15 {
				s.publish(p, strconv.Itoa(i))
			}
		}},
		"expired": {func(c *jetstream.StreamConfig) { c.MaxAge = 3 * time.Second }, func(s *scene, _ *fenced.Publisher) {
			wait.Until(s, "it expires", func() bool { return s.stream().CachedInfo().State.Msgs == 0 })
			s.made.MaxAge = 0 // what follows must not depend on the speed of the machine
			_, err := s.js.UpdateStream(wait.Context(s), s.made)
			must(s, err)
		}},
		"overwritten": {nil, func(s *scene, p *fenced.Publisher) {
			for subject := range s.subjects(fence + ".>") {
				if _, err := s.js.Publish(wait.Context(s), subject, []byte("whatever")); err != nil {
					s.Fatal(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change == nil {
				c.change = func(*jetstream.StreamConfig) {}
			}
			s := newScene(t, c.change)
			leader := s.elect("a")
			p := leader.open()
			replayed := s.sent(p)
			c.lose(s, p)
			if _, err := s.js.PublishMsg(wait.Context(t), replayed); err == nil {
				t.Error("a message of before is accepted without the fence")
			}
			for i := range 20 {
				s.publish(p, "after"+strconv.Itoa(i))
			}
			next := leader.supplant("next")
			n := next.open()
			_, err := p.Publish(wait.Context(t), message("late"))
			s.deposed(err)
			s.publish(n, "mine")
		})
	}
}

// sent publishes a message and returns it as it was sent, with its condition.
func (s *scene) sent(p *fenced.Publisher) *nats.Msg {
	s.Helper()
	ack, err := p.Publish(wait.Context(s), message("first"))
	must(s, err)
	m, err := s.stream().GetMsg(wait.Context(s), ack.Sequence)
	must(s, err)
	return &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
}

func (s *scene) subjects(filter string) map[string]uint64 {
	s.Helper()
	info, err := s.stream().Info(wait.Context(s), jetstream.WithSubjectFilter(filter))
	must(s, err)
	return info.State.Subjects
}

// TestRecreatedStream: in a recreated stream, sequences begin again. So the new leader's fence gets
// the sequences that the old leader's fence had.
func TestRecreatedStream(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	old := s.elect("old")
	late := old.open()
	replayed := s.sent(late)
	must(t, s.js.DeleteStream(wait.Context(t), "PAYMENTS"))
	s.create()
	next := old.supplant("next")
	p := next.open()
	if p.Begin() != late.Begin() {
		t.Errorf("the new leader begins at %d, the old one did at %d: this test proves nothing", p.Begin(), late.Begin())
	}
	if _, err := s.js.PublishMsg(wait.Context(t), replayed); err == nil {
		t.Error("a message of the old leader's is accepted")
	}
	for range 20 {
		if _, err := late.Publish(wait.Context(t), message("late")); !errors.Is(err, fenced.ErrUnfit) {
			t.Errorf("publishing to another stream of that name: %v", err)
		}
	}
	s.publish(p, "mine")
	s.expect(next.wrote("mine"))
}

// TestSecondPublisherOfATerm: a second Publisher of a term does not disturb the first, for example
// after an Open that failed half-way.
func TestSecondPublisherOfATerm(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	leader := s.elect("a")
	p, q := leader.open(), leader.open()
	s.publish(p, "one")
	s.publish(q, "two")
	s.publish(p, "three")
	s.expect(leader.wrote("one"), leader.wrote("two"), leader.wrote("three"))
	if p.Begin() != q.Begin() {
		t.Errorf("one begins at %d, the other at %d", p.Begin(), q.Begin())
	}
}

// Only a message of a newer term of this election deposes. Other messages do not, and are not
// overwritten.
func TestForeignMessagesDoNotDepose(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(nats.Header){
		"another election": func(h nats.Header) { h.Set(fenced.FenceHeader, "shipping") },
		"the same token":   func(h nats.Header) { h.Set("Tenure-Holder", "another process") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			leader := s.elect("a")
			p := leader.open()
			for subject := range s.subjects(fence + ".>") {
				last, err := s.stream().GetLastMsgForSubject(wait.Context(t), subject)
				must(t, err)
				change(last.Header)
				last.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last.Sequence, 10))
				if _, err := s.js.PublishMsg(wait.Context(t), &nats.Msg{Subject: subject, Header: last.Header}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := p.Publish(wait.Context(t), message("x"))
			_, openErr := fenced.Open(wait.Context(t), leader.term, s.js, "PAYMENTS", fence)
			for _, err := range []error{err, openErr} {
				if !errors.Is(err, fenced.ErrFenced) || errors.Is(err, tenure.ErrLost) {
					t.Errorf("got the error %v", err)
				}
			}
			s.expect()
		})
	}
}

// TestOwnConditions: the caller's own conditions apply as well. A refusal for one of them is not a
// refusal by the fence.
func TestOwnConditions(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.elect("a").open()
	m := message("x")
	m.Header = nats.Header{jetstream.ExpectedLastSeqHeader: {"1"}}
	_, err := p.Publish(wait.Context(t), m)
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence ||
		errors.Is(err, fenced.ErrFenced) || errors.Is(err, fenced.ErrUnknown) {
		t.Errorf("a condition of the caller's: %v", err)
	}
	m.Header = nats.Header{jetstream.MsgIDHeader: {"once"}}
	for i := range 2 {
		ack, err := p.Publish(wait.Context(t), m)
		if err != nil || ack.Duplicate != (i > 0) {
			t.Errorf("sent %d times before: %+v, %v", i, ack, err)
		}
	}
	for _, name := range []string{
		jetstream.ExpectedLastSubjSeqHeader, jetstream.ExpectedLastSubjSeqSubjHeader, jetstream.ScheduleHeader, "Nats-Batch-Id", "nats-batch-id",
	} {
		m.Header = nats.Header{name: {"1"}}
		if _, err := p.Publish(wait.Context(t), m); !errors.Is(err, fenced.ErrHeader) {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

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
