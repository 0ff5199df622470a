package tenure

import (
	"context"
	"sync"
)

// cancelGroup waits for the ends of the contexts of a Group's campaigns. Most elections share one
// context, so one wait serves them all.
type cancelGroup struct {
	mu     sync.Mutex
	byDone map[<-chan struct{}]*campaignContext // by the context's Done
}

// campaignContext is one context and the seekers that campaign with it.
type campaignContext struct {
	stop    func() bool // stops the wait for its end
	seekers []*seeker
}

// add makes the runner of a seeker leave when the seeker's context ends.
func (g *cancelGroup) add(s *seeker) {
	done := s.ctx.Done()
	if done == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	campaign := g.byDone[done]
	if campaign == nil {
		campaign = &campaignContext{}
		if g.byDone == nil {
			g.byDone = map[<-chan struct{}]*campaignContext{}
		}
		g.byDone[done] = campaign
		campaign.stop = context.AfterFunc(s.ctx, func() { g.ended(done) })
	}
	s.index = len(campaign.seekers)
	campaign.seekers = append(campaign.seekers, s)
}

func (g *cancelGroup) ended(done <-chan struct{}) {
	g.mu.Lock()
	campaign := g.byDone[done]
	delete(g.byDone, done)
	g.mu.Unlock()
	if campaign == nil {
		return // the last seeker has just been removed
	}
	for _, s := range campaign.seekers {
		s.runner.leave(s)
	}
}

// remove stops waiting for the end of a seeker's context.
func (g *cancelGroup) remove(s *seeker) {
	done := s.ctx.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	campaign := g.byDone[done]
	if campaign == nil || s.index >= len(campaign.seekers) || campaign.seekers[s.index] != s {
		return // the context has ended, and later campaigns may use it again
	}
	last := len(campaign.seekers) - 1
	campaign.seekers[s.index], campaign.seekers[last].index = campaign.seekers[last], s.index
	campaign.seekers[last], campaign.seekers = nil, campaign.seekers[:last]
	if last == 0 {
		delete(g.byDone, done)
		campaign.stop()
	}
}
