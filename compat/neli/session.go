package neli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/nomination"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// session is one membership of the group, with the election that the group nominates for. It ends
// when Pulse is no longer called; the next one begins when Pulse is called again.
type session struct {
	n      *elector
	member member
	ctx    context.Context // ends to end the session
	end    context.CancelCauseFunc
	term   *tenure.Term // the last one; needed if it was abandoned
}

// runSessions runs one session after another until Close is called. It keeps a fatal error until
// then.
func (n *elector) runSessions() {
	defer n.ended()
	var store driver.Store
	err := n.retry("open the log", func(ctx context.Context) (err error) {
		store, err = n.ground.open(ctx)
		return err
	})
	for err == nil && n.awake() {
		err = n.session(store)
	}
	if n.ctx.Err() == nil {
		n.log.Error("neli: this instance can never lead", "error", err)
		n.change(func() { n.fatal = err })
	}
	<-n.ctx.Done()
}

// awake waits for the next Pulse and returns true, or false when the instance is closed.
func (n *elector) awake() bool {
	defer n.change(func() { n.dormant = false })
	n.change(func() { n.dormant = true })
	for n.ctx.Err() == nil {
		changed := n.news()
		if n.silent() < n.props.silence {
			return true
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
		}
	}
	return false
}

// session takes part until Pulse is no longer called or the instance is closed. Neither is an
// error.
func (n *elector) session(store driver.Store) error {
	s := &session{n: n}
	s.ctx, s.end = context.WithCancelCause(n.ctx)
	defer s.end(nil)
	err := n.retry("join the group", func(ctx context.Context) (err error) {
		s.member, err = n.ground.join(ctx)
		return err
	})
	if err != nil {
		return err
	}
	leave := sync.OnceFunc(s.leave)
	defer leave()
	defer context.AfterFunc(s.ctx, leave)() // at once, while the program is finishing
	return s.campaign(store)
}

func (s *session) leave() {
	if err := s.member.Close(); err != nil {
		s.n.log.Warn("neli: left the group with an error", "error", err)
	}
}

func (s *session) campaign(store driver.Store) error {
	group, err := tenure.NewGroup(store, s.settings())
	if err != nil {
		return err
	}
	e, err := group.Election(s.n.cfg.LeaderGroupID)
	if err != nil {
		return err
	}
	done, err := group.Join(s.ctx, e, tenure.Lead(s.lead))
	if err != nil {
		return err
	}
	err = s.attend(done)
	if errors.Is(err, tenure.ErrAbandoned) {
		return s.resign()
	}
	if cause := context.Cause(s.ctx); err == nil && s.n.ctx.Err() == nil && !errors.Is(cause, errSilent) {
		err = cause
	}
	return err
}

// attend ends the session when Pulse is no longer called. It returns when the election has ended.
func (s *session) attend(done <-chan error) error {
	silence := time.NewTimer(s.n.props.silence)
	defer silence.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-silence.C:
			left := s.n.props.silence - s.n.silent()
			if left > 0 {
				silence.Reset(left)
				continue
			}
			s.n.log.Warn("neli: leaving the group: Pulse was not called", "max.poll.interval", s.n.props.silence)
			s.end(errSilent) // and the election with it
		}
	}
}

const (
	attemptWithin = 10 * time.Second
	firstPause    = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// retry calls do until it succeeds, fails for good, or the instance is closed.
func (n *elector) retry(what string, do func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := n.attempt(do)
		if err == nil || n.ctx.Err() != nil || !n.ground.passing(err) {
			return err
		}
		n.log.Warn("neli: cannot "+what+"; trying again", "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-n.ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (n *elector) attempt(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(n.ctx, attemptWithin)
	defer cancel()
	return do(ctx)
}

// ground is the store and the group of an election: Kafka, except in tests.
type ground interface {
	// open returns the store, the first time or again.
	open(ctx context.Context) (driver.Store, error)
	// join becomes a member of the group, which decides the nominee.
	join(ctx context.Context) (member, error)
	// metadata is published by a leader, so that other candidates can check it: check returns an
	// error if the metadata of another leader is wrong.
	metadata() map[string]string
	check(leader tenure.Leader) error
	// passing reports whether another try may succeed after this error of open or join.
	passing(err error) bool
	close() error
}

// member is a membership of the group; Close leaves it.
type member interface {
	nomination.Nominator
	Close() error
}

// errSilent ends a session without calls of Pulse.
var errSilent = errors.New("neli: Pulse was not called for max.poll.interval.ms")

// logSuffix is appended to LeaderTopic for the topic of the leases. LeaderTopic itself may have any
// number of partitions and any retention, so it cannot hold them.
const logSuffix = ".log"

// kafka is the ground of every election outside of tests.
type kafka struct {
	connection []kgo.Opt
	topic      string
	answer     time.Duration
	group      group.Config
	log        *slog.Logger
	store      *kafkalog.Store // nil before open
}

func newKafka(c Config, p properties) *kafka {
	timeout := *c.HeartbeatTimeout
	g := group.Config{
		Name: c.LeaderGroupID, Topic: c.LeaderTopic, Instance: p.instance,
		SessionTimeout: sessions * timeout, Heartbeat: heartbeat(c, p), BesideGoNELI: !c.WithoutGoNELI,
		Logger: c.Scribe.With("name", c.Name),
	}
	return &kafka{
		connection: append(append([]kgo.Opt{}, p.connection...), c.ClientOptions...),
		topic:      c.LeaderTopic + logSuffix, answer: answerWithin(leaseFor(timeout)), group: g, log: c.Scribe,
	}
}

func (k *kafka) open(ctx context.Context) (driver.Store, error) {
	s, err := kafkalog.Open(ctx, k.connection, k.topic, kafkalog.WithTimeout(k.answer))
	if err != nil {
		return nil, err
	}
	k.store = s
	return s, nil
}

func (k *kafka) join(ctx context.Context) (member, error) {
	return group.Join(ctx, k.connection, k.group)
}

func (k *kafka) metadata() map[string]string { return group.Metadata(k.group.Name) }

func (k *kafka) check(leader tenure.Leader) error {
	return group.CheckLeader(k.group.Name, leader.Metadata)
}

// passing reports whether another try may succeed: after errors of the network, after those that
// Kafka itself calls retriable, and while the group has members of another kind, such as goNELI
// processes that are about to be stopped. An operator must fix the others.
func (k *kafka) passing(err error) bool {
	if errors.Is(err, driver.ErrDenied) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, kerr.InconsistentGroupProtocol) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		kgo.IsRetryableBrokerErr(err) || kerr.IsRetriable(err)
}

func (k *kafka) close() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}
