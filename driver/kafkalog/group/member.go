package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// follow joins the group, and again whenever it must be shared out again, until Close.
func (g *Group) follow() {
	for g.ctx.Err() == nil {
		err := g.join()
		g.note("join", err)
		if errors.Is(err, kerr.FencedInstanceID) {
			return
		}
		switch {
		case hopeless(err):
			sleep(g.ctx, g.cfg.Heartbeat)
		case err != nil:
			sleep(g.ctx, g.cfg.pause())
		default:
			select {
			case <-g.ctx.Done():
			case <-g.rejoin:
			}
		}
	}
}

// again is how often the answer to a join may be to start over before it counts as a failure.
const again = 5

// join asks for a place in the group, which comes when all members have asked, and then for this
// member's share.
func (g *Group) join() error {
	g.setJoining(true)
	defer g.setJoining(false)
	var err error
	for range again {
		if err = g.attempt(); !g.begins(err) {
			break
		}
	}
	return remedy(g.cfg, err)
}

func (g *Group) setJoining(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joining = yes
}

// begins reports whether the answer is to start over, and sets the identity for that.
func (g *Group) begins(err error) bool {
	switch {
	case errors.Is(err, kerr.UnknownMemberID):
		g.become(nobody)
	case errors.Is(err, kerr.FencedInstanceID):
		g.become(nobody)
		return false
	case errors.Is(err, kerr.MemberIDRequired), errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration):
	default:
		return false
	}
	return true
}

func (g *Group) attempt() error {
	select {
	case <-g.rejoin: // the next attempt is that join
	default:
	}
	joined, err := g.askToJoin()
	if errors.Is(err, kerr.MemberIDRequired) {
		g.become(identity{joined.MemberID, nobody.generation})
		g.meet()
	}
	if err != nil {
		return err
	}
	g.become(identity{joined.MemberID, joined.Generation})
	g.meet()
	var shares []kmsg.SyncGroupRequestGroupAssignment
	if joined.LeaderID == joined.MemberID && !joined.SkipAssignment {
		shares = g.share(joined.Members)
	}
	return g.synchronize(joined, shares)
}

func (g *Group) meet() {
	select {
	case <-g.met:
	default:
		close(g.met)
	}
}

// patience is how long the members of a group may take to ask for their places.
func (g *Group) patience() time.Duration { return g.cfg.SessionTimeout }

func (g *Group) askToJoin() (*kmsg.JoinGroupResponse, error) {
	m := g.now()
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = protocol, claim(g.cfg.Topic, g.nominee.owned(), m.generation)
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = g.cfg.Name, m.id, g.instance(), kind
	req.SessionTimeoutMillis = int32(g.cfg.SessionTimeout.Milliseconds())
	req.RebalanceTimeoutMillis = int32(g.patience().Milliseconds())
	req.Protocols = append(req.Protocols, p)
	answer, err := g.coordinator.ask(g.ctx, req)
	joined, _ := answer.(*kmsg.JoinGroupResponse)
	return joined, err
}

// share decides for all, because the coordinator has chosen this member for that.
func (g *Group) share(members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	shares, strangers := plan(g.cfg.Topic, members)
	if strangers > 0 {
		g.cfg.Logger.Warn("members of this group have another topic, and are never nominated: give all of them the same",
			"topic", g.cfg.Topic, "members", strangers)
	}
	return shares
}

// synchronize sends the shares, if this member decided them, and gets this member's part.
func (g *Group) synchronize(joined *kmsg.JoinGroupResponse, shares []kmsg.SyncGroupRequestGroupAssignment) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation, req.InstanceID = g.cfg.Name, joined.MemberID, joined.Generation, g.instance()
	kindOf, name := kind, protocol
	req.ProtocolType, req.Protocol, req.GroupAssignment = &kindOf, &name, shares
	ctx, cancel := context.WithTimeout(g.ctx, g.patience()+g.cfg.timeout())
	defer cancel()
	sent := time.Now()
	answer, err := g.coordinator.ask(ctx, req)
	if err != nil {
		return err
	}
	owns, err := assigned(g.cfg.Topic, answer.(*kmsg.SyncGroupResponse).MemberAssignment)
	if err != nil {
		return fmt.Errorf("%w: an assignment that cannot be read: %w", broker.ErrAnswer, err)
	}
	g.nominee.assign(owns, sent)
	g.cfg.Logger.Debug("partitions of the group were assigned", "generation", joined.Generation, "nominee", owns)
	return nil
}

func (g *Group) instance() *string {
	if g.cfg.Instance == "" {
		return nil
	}
	return &g.cfg.Instance
}

// leave gives up the place in the group, if there is one.
func (g *Group) leave() error {
	m := g.now()
	if m.id == "" || g.cfg.Instance != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.timeout())
	defer cancel()
	leaver := kmsg.NewLeaveGroupRequestMember()
	leaver.MemberID = m.id
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = g.cfg.Name, m.id
	req.Members = append(req.Members, leaver)
	_, err := g.coordinator.ask(ctx, req)
	if isMisdirected(err) {
		_, err = g.coordinator.ask(ctx, req)
	}
	if err == nil || errors.Is(err, kerr.UnknownMemberID) {
		return nil
	}
	return fmt.Errorf("group %s: leave: it failed, so the group names the next owner only %v later: %w", g.cfg.Name, g.cfg.SessionTimeout, remedy(g.cfg, err))
}

const (
	// firstHurriedPause is the first pause between heartbeats when the leader is gone. Each later
	// pause is twice as long.
	firstHurriedPause = 5 * time.Millisecond
	// hurriedPauses: while there is no leader, the pauses grow to an eighth of Heartbeat at most.
	hurriedPauses = 8
)

// beat reports to the coordinator that this member is alive, and learns from it that the group must
// be shared out again. It goes on while a join waits for other members: otherwise a slow member
// would cost the nominee its nomination.
func (g *Group) beat() {
	timer := time.NewTimer(g.cfg.Heartbeat)
	defer timer.Stop()
	hurried := g.cfg.Heartbeat // the next pause, unless longest is shorter
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.hurry:
			hurried = firstHurriedPause
		case <-timer.C:
		}
		err := g.heartbeat()
		wait := min(hurried, g.longest())
		if err != nil {
			wait = g.cfg.pause()
		}
		hurried = 2 * wait
		timer.Reset(wait)
	}
}

// longest returns the longest pause at present. After two sessions the group has dealt with any
// member that ended.
func (g *Group) longest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.vacant.IsZero() && time.Since(g.vacant) < 2*g.cfg.SessionTimeout {
		return g.cfg.Heartbeat / hurriedPauses
	}
	return g.cfg.Heartbeat
}

// heartbeat returns an error if the coordinator was not reached.
func (g *Group) heartbeat() error {
	m := g.now()
	if m.generation < 0 {
		return nil
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation, req.InstanceID = g.cfg.Name, m.id, m.generation, g.instance()
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.timeout())
	defer cancel()
	sent := time.Now()
	_, err := g.coordinator.ask(ctx, req)
	return g.judge(m, sent, err)
}

// judge handles the answer to a heartbeat of m.
func (g *Group) judge(m identity, sent time.Time, err error) error {
	switch {
	case err == nil:
		g.nominee.answered(sent, true)
		g.note("heartbeat", nil)
	case errors.Is(err, kerr.RebalanceInProgress):
		g.nominee.answered(sent, false)
		if g.current(m) {
			raise(g.rejoin)
		}
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.FencedInstanceID):
		if g.current(m) {
			g.nominee.lose()
			raise(g.rejoin)
		}
	default:
		err = remedy(g.cfg, err)
		g.note("heartbeat", err)
		return err
	}
	return nil
}

// current reports whether m still is this member, and no join is under way. Another join after that
// one would make the group share out again for nothing.
func (g *Group) current(m identity) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member == m && !g.joining
}

// Join becomes a member of a consumer group, over a client of its own that has the connection
// options given: kgo.SeedBrokers, kgo.DialTLSConfig, kgo.SASL, kgo.ClientID, a logger, hooks. The
// member sets all other options itself or does without them; options of consumer groups and
// transactions are refused. A topic that does not exist is created.
//
// It returns when the group's coordinator has accepted this process as a future member, or after a
// third of SessionTimeout if the coordinator does not answer. Then the member goes on trying, and
// Err returns the reason. In this time there is no nominee, and the election goes on without one,
// unless its nomination.Config has Only.
//
// It returns an error that wraps driver.ErrDenied if the brokers refuse the user or a right is
// missing, and any other error if the Config is wrong, no broker answers, the topic does not exist
// and cannot be created, the group has members of another kind, or ctx ends. The caller closes the
// group.
func Join(ctx context.Context, connection []kgo.Opt, cfg Config) (*Group, error) {
	cfg, err := cfg.settle()
	if err != nil {
		return nil, fmt.Errorf("group: %w", err)
	}
	client, err := connect(connection, cfg)
	if err != nil {
		return nil, fmt.Errorf("group %s: the client's options: %w", cfg.Name, err)
	}
	g := newGroup(client, cfg)
	if err := g.enter(ctx); err != nil {
		_ = g.Close()
		return nil, fmt.Errorf("group %s: %w", cfg.Name, err)
	}
	return g, nil
}

// connect sets the options that decide how long the client keeps a broker that does not answer.
func connect(connection []kgo.Opt, cfg Config) (*kgo.Client, error) {
	timeout := cfg.timeout()
	held := []kgo.Opt{
		kgo.DialTimeout(timeout),
		kgo.RequestTimeoutOverhead(timeout),
		kgo.RetryTimeout(timeout),
		kgo.RequestRetries(2),
		kgo.RetryBackoffFn(func(int) time.Duration { return timeout / 20 }),
		kgo.MetadataMinAge(timeout / 20),
	}
	return broker.Connect(connection, held...)
}

func (g *Group) enter(ctx context.Context) error {
	if err := within(ctx, g.client.Ping); err != nil {
		return remedy(g.cfg, err)
	}
	if err := within(ctx, g.seeTopic); err != nil {
		return fmt.Errorf("topic %s: %w", g.cfg.Topic, remedy(g.cfg, err))
	}
	g.work.Go(g.follow)
	g.work.Go(g.beat)
	go g.nominee.tell()
	return g.await(ctx)
}

// within ends with the context, which not all of the library's calls do. An abandoned call ends
// with the client.
func within(ctx context.Context, call func(context.Context) error) error {
	var calls abandon.Calls
	_, err := abandon.Run(ctx, &calls, func() (struct{}, error) { return struct{}{}, call(ctx) }, abandon.NoUndo)
	return err
}

// await waits for the coordinator's first answer.
func (g *Group) await(ctx context.Context) error {
	enough := time.NewTimer(g.cfg.SessionTimeout / 3)
	defer enough.Stop()
	look := time.NewTicker(g.cfg.pause())
	defer look.Stop()
	for {
		select {
		case <-g.met:
			return nil
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), g.Err())
		case <-look.C:
			if err := g.Err(); hopeless(err) || errors.Is(err, driver.ErrDenied) {
				return err
			}
		}
	}
}

// faults are the errors that waiting does not repair.
var faults = []*kerr.Error{
	kerr.InconsistentGroupProtocol,
	kerr.InvalidSessionTimeout,
	kerr.InvalidGroupID,
	kerr.GroupMaxSizeReached,
	kerr.FencedInstanceID,
	kerr.UnsupportedVersion,
}

// hopeless reports whether an operator must act before the group can be joined.
func hopeless(err error) bool { return broker.IsRefusal(err) || broker.IsAny(err, faults) }

// remedy adds the remedy to an answer of the coordinator, and driver.ErrDenied where that applies.
func remedy(c Config, err error) error {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		err = fmt.Errorf("grant Read on the group %s: %w", c.Name, err)
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		err = fmt.Errorf("group %s has members of another kind, such as ordinary consumers or goNELI's: stop them, or take another group: %w", c.Name, err)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		err = fmt.Errorf("a SessionTimeout of %v is not between group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers, "+
			"which are 6 s and 30 min unless they are set: %w", c.SessionTimeout, err)
	case errors.Is(err, kerr.FencedInstanceID):
		err = fmt.Errorf("another process has joined group %s as instance %s, and this one is out for good: give each its own name: %w", c.Name, c.Instance, err)
	}
	return broker.Denied(err)
}
