package tenure

import (
	"context"
	"sync"
)

// cancelGroup waits for the ends of the contexts that a Group campaigns with. Most elections share
// one context, which is waited for once.
type cancelGroup struct {
	mu     sync.Mutex
	byDone map[<-chan struct{}]*campaignContext // by the context's Done
}

// campaignContext is one context and the seekers that campaign with it.
type campaignContext struct {
	stop    func() bool // waiting
	seekers []*seeker
}

// add makes a seeker's runner leave when the context ends that it seeks with.
func (g *cancelGroup) add(s *seeker) {
	done := s.ctx.Done()
	if done == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.byDone[done]
	if one == nil {
		one = &campaignContext{}
		if g.byDone == nil {
			g.byDone = map[<-chan struct{}]*campaignContext{}
		}
		g.byDone[done] = one
		one.stop = context.AfterFunc(s.ctx, func() { g.ended(done) })
	}
	s.place = len(one.seekers)
	one.seekers = append(one.seekers, s)
}

func (g *cancelGroup) ended(done <-chan struct{}) {
	g.mu.Lock()
	one := g.byDone[done]
	delete(g.byDone, done)
	g.mu.Unlock()
	if one == nil {
		return // the last seeker has just been removed
	}
	for _, s := range one.seekers {
		s.runner.leave(s)
	}
}

// remove stops waiting for the end of a seeker's context.
func (g *cancelGroup) remove(s *seeker) {
	done := s.ctx.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.byDone[done]
	if one == nil || s.place >= len(one.seekers) || one.seekers[s.place] != s {
		return // the end has come, and other campaigns may use it again
	}
	last := len(one.seekers) - 1
	one.seekers[s.place], one.seekers[last].place = one.seekers[last], s.place
	one.seekers[last], one.seekers = nil, one.seekers[:last]
	if last == 0 {
		delete(g.byDone, done)
		one.stop()
	}
}
