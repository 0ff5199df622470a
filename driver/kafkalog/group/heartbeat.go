package group

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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

// current reports whether m still is this member, and no join is under way. Another join after that
// one would make the group share out again for nothing.
func (g *Group) current(m identity) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member == m && !g.joining
}
