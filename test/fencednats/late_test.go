//go:build integration

package fencednats

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestOneServer(t *testing.T) {
	t.Parallel()
	each(t, onOne(t))
}

func TestThreeServers(t *testing.T) {
	t.Parallel()
	each(t, onThree(t, natsd.StartCluster))
}

func each(t *testing.T, servers *scene) {
	for name, run := range map[string]func(*scene){
		"LateMessage":         lateMessage,
		"LateMessageUnfenced": lateMessageUnfenced,
		"MessageBeforeOpen":   messageBeforeOpen,
		"LateFence":           lateFence,
		"LostAnswer":          lostAnswer,
		"Duplicate":           duplicate,
		"OwnConditions":       ownConditions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(servers.again(t))
		})
	}
}

// held starts a publish whose message or answer the network delays. Its caller gives up at that
// time.
func held(s *scene, kept func() bool, publish func(context.Context) error) error {
	s.Helper()
	ctx, giveUp := context.WithCancel(wait.Context(s))
	defer giveUp()
	done := aside(func() error { return publish(ctx) })
	wait.Until(s, "the network has it", kept)
	giveUp()
	return outcomeOf(s, done)
}

// sent returns a function that reports whether anything was sent since.
func sent(js jetstream.JetStream) func() bool {
	nc := js.Conn()
	before := nc.Stats().OutMsgs
	return func() bool {
		n, err := nc.Buffered()
		return err == nil && n == 0 && nc.Stats().OutMsgs > before
	}
}

// lateMessage: a message that the network delayed arrives after the next leader's fence.
func lateMessage(s *scene) {
	js, network := s.relayed()
	old := s.elect("old", js)
	late := old.open()
	old.publish(late, "early")
	network.Hold()
	if err := held(s, sent(js), func(ctx context.Context) error {
		_, err := late.Publish(ctx, s.message("late"))
		return err
	}); !errors.Is(err, fenced.ErrUnknown) {
		s.Errorf("a message on its way: %v", err)
	}
	next := old.supplant("next", s.js)
	p := next.open()
	next.publish(p, "mine")
	network.Release()
	_, err := late.Publish(wait.Context(s), s.message("later")) // it arrives after the late one
	if !errors.Is(err, fenced.ErrFenced) || !errors.Is(err, tenure.ErrLost) {
		s.Errorf("a deposed leader gets the error %v", err)
	}
	s.expect(old.wrote("early"), next.wrote("mine"))
}

// lateMessageUnfenced is lateMessage without the fence. It shows that the fence is needed.
func lateMessageUnfenced(s *scene) {
	js, network := s.relayed()
	old := s.elect("old", js)
	network.Hold()
	_ = held(s, sent(js), func(ctx context.Context) error { return old.unfenced(ctx, "late") })
	next := old.supplant("next", s.js)
	must(s, next.unfenced(wait.Context(s), "mine"))
	network.Release()
	must(s, old.unfenced(wait.Context(s), "later"))
	s.expect(next.wrote("mine"), old.wrote("late"), old.wrote("later"))
}

// messageBeforeOpen: the next leader does not fence off messages that arrive before it opens. It
// learns where they end.
func messageBeforeOpen(s *scene) {
	js, network := s.relayed()
	old := s.elect("old", js)
	late := old.open()
	network.Hold()
	_ = held(s, sent(js), func(ctx context.Context) error {
		_, err := late.Publish(ctx, s.message("late"))
		return err
	})
	next := old.supplant("next", s.js)
	network.Release()
	old.publish(late, "later")
	p := next.open()
	next.publish(p, "mine")
	s.expect(old.wrote("late"), old.wrote("later"), next.wrote("mine"))
}

// lateFence: a message of the old leader's fence that arrives after the next leader's has no
// effect.
func lateFence(s *scene) {
	old := s.elect("old", s.js)
	first := old.open()
	stream, err := s.js.Stream(wait.Context(s), s.name)
	must(s, err)
	taken, err := stream.GetMsg(wait.Context(s), first.Begin())
	must(s, err)
	// So that the state under which it was sent is there again.
	must(s, stream.Purge(wait.Context(s)))
	next := old.supplant("next", s.js)
	p := next.open()
	next.publish(p, "one")
	if _, err := s.js.PublishMsg(wait.Context(s), &nats.Msg{Subject: taken.Subject, Header: taken.Header}); err == nil {
		s.Error("the old leader has taken the fence back")
	}
	if _, err := fenced.Open(wait.Context(s), old.term, s.js, s.name, s.fenceSubject()); !errors.Is(err, fenced.ErrFenced) || !errors.Is(err, tenure.ErrLost) {
		s.Errorf("the old leader opens: %v", err)
	}
	if _, err := first.Publish(wait.Context(s), s.message("late")); !errors.Is(err, fenced.ErrFenced) {
		s.Errorf("the old leader publishes: %v", err)
	}
	next.publish(p, "two")
	s.expect(next.wrote("one"), next.wrote("two"))
}

// lostAnswer: a message is stored and its publisher cannot know.
func lostAnswer(s *scene) {
	js, network := s.relayed()
	leader := s.elect("a", js)
	p := leader.open()
	network.Mute()
	stream, err := s.js.Stream(wait.Context(s), s.name)
	must(s, err)
	stored := func() bool {
		_, err := stream.GetLastMsgForSubject(wait.Context(s), s.message("").Subject)
		return err == nil
	}
	if err := held(s, stored, func(ctx context.Context) error {
		_, err := p.Publish(ctx, s.message("x"))
		return err
	}); !errors.Is(err, fenced.ErrUnknown) || errors.Is(err, tenure.ErrLost) {
		s.Errorf("a lost answer: %v", err)
	}
	network.Heal()
	leader.js = s.js
	leader.publish(leader.open(), "y")
	s.expect(leader.wrote("x"), leader.wrote("y"))
}

// duplicate: a repeated message ID does not bypass the fence. Either the message is refused, or
// nothing is stored.
func duplicate(s *scene) {
	old := s.elect("old", s.js)
	late := old.open()
	m := s.message("once")
	m.Header = nats.Header{jetstream.MsgIDHeader: {"id"}}
	for range 2 {
		if _, err := late.Publish(wait.Context(s), m); err != nil {
			s.Error(err)
		}
	}
	next := old.supplant("next", s.js)
	p := next.open()
	if ack, err := late.Publish(wait.Context(s), m); err == nil && !ack.Duplicate {
		s.Errorf("a deposed leader publishes: %+v", ack)
	}
	m.Header[jetstream.MsgIDHeader] = []string{"other"}
	if ack, err := late.Publish(wait.Context(s), m); !errors.Is(err, fenced.ErrFenced) {
		s.Errorf("a deposed leader publishes: %+v, %v", ack, err)
	}
	if ack, err := p.Publish(wait.Context(s), m); err != nil || ack.Duplicate {
		s.Errorf("the id of a message that was refused is used up: %+v, %v", ack, err)
	}
	s.expect(old.wrote("once"), next.wrote("once"))
}

// ownConditions: several servers may have received a message. If one refuses it for a condition of
// the caller, another may still have stored it.
func ownConditions(s *scene) {
	leader := s.elect("a", s.js)
	p := leader.open()
	m := s.message("x")
	m.Header = nats.Header{jetstream.ExpectedLastSeqHeader: {"1"}}
	var refused *jetstream.APIError
	replicated := s.cluster != nil
	_, err := p.Publish(wait.Context(s), m)
	unknown := errors.Is(err, fenced.ErrUnknown)
	if !errors.As(err, &refused) || errors.Is(err, fenced.ErrFenced) || unknown != replicated {
		s.Errorf("with the stream's last sequence: %v", err)
	}
	// It would end a replicated stream.
	m.Header = nats.Header{jetstream.ExpectedLastMsgIDHeader: {"other"}}
	_, err = p.Publish(wait.Context(s), m)
	if errors.Is(err, fenced.ErrHeader) != replicated || errors.As(err, &refused) == replicated {
		s.Errorf("with its last id: %v", err)
	}
	leader.publish(p, "y")
	s.expect(leader.wrote("y"))
}
