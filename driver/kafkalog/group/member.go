package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
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
	p.Name, p.Metadata = protocol, claim(g.cfg.Topic, g.nomination.owned(), m.generation)
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
	g.nomination.assign(owns, sent)
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
