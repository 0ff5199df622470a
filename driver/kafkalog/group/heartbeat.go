package group

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// haste is the first pause when nobody leads any more. Each is twice the one before.
	haste = 5 * time.Millisecond
	// hastes is how many pauses a Heartbeat has in the end, as long as nobody leads.
	hastes = 8
)

// beat tells the coordinator that this member is alive, and hears from it that the group is to be shared out anew. It goes on
// while a join waits for other members: otherwise one that is slow would cost the nominee its nomination.
func (g *Group) beat() {
	timer := time.NewTimer(g.cfg.Heartbeat)
	defer timer.Stop()
	hurried := g.cfg.Heartbeat // the next pause, if that is shorter
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-g.hurry:
			hurried = haste
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

// longest is the longest pause now. In two sessions all has come that the end of a member can bring.
func (g *Group) longest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.vacant.IsZero() && time.Since(g.vacant) < 2*g.cfg.SessionTimeout {
		return g.cfg.Heartbeat / hastes
	}
	return g.cfg.Heartbeat
}

// heartbeat returns an error if the coordinator could not be asked.
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

// judge draws the conclusions from the answer to a heartbeat of m.
func (g *Group) judge(m identity, sent time.Time, err error) error {
	switch {
	case err == nil:
		g.nomination.answered(sent, true)
		g.note("heartbeat", nil)
	case errors.Is(err, kerr.RebalanceInProgress):
		g.nomination.answered(sent, false)
		if g.current(m) {
			raise(g.rejoin)
		}
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.FencedInstanceID):
		if g.current(m) {
			g.nomination.lose()
			raise(g.rejoin)
		}
	default:
		err = remedy(g.cfg, err)
		g.note("heartbeat", err)
		return err
	}
	return nil
}

// current reports whether m still is this member, and no join is under way that settles what there is to settle: to join
// once more after it would have the group share out anew for nothing.
func (g *Group) current(m identity) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member == m && !g.joining
}
