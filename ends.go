package tenure

import (
	"context"
	"sync"
)

// ends waits for the ends of the contexts that siblings campaign with. Most have one in common,
// which is waited for once.
type ends struct {
	mu sync.Mutex
	of map[<-chan struct{}]*end // by the context's Done
}

// end is that of one context.
type end struct {
	stop    func() bool // waiting
	seekers []*seeker
}

// await makes a seeker's runner leave when the context ends that it seeks with.
func (e *ends) await(s *seeker) {
	done := s.ctx.Done()
	if done == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.of[done]
	if one == nil {
		one = &end{}
		if e.of == nil {
			e.of = map[<-chan struct{}]*end{}
		}
		e.of[done] = one
		one.stop = context.AfterFunc(s.ctx, func() { e.come(done) })
	}
	s.place = len(one.seekers)
	one.seekers = append(one.seekers, s)
}

func (e *ends) come(done <-chan struct{}) {
	e.mu.Lock()
	one := e.of[done]
	delete(e.of, done)
	e.mu.Unlock()
	if one == nil {
		return // the last seeker has just been forgotten
	}
	for _, s := range one.seekers {
		s.runner.leave(s)
	}
}

// forget waits no longer for this one.
func (e *ends) forget(s *seeker) {
	done := s.ctx.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.of[done]
	if one == nil || s.place >= len(one.seekers) || one.seekers[s.place] != s {
		return // the end has come, and other campaigns may use it again
	}
	last := len(one.seekers) - 1
	one.seekers[s.place], one.seekers[last].place = one.seekers[last], s.place
	one.seekers[last], one.seekers = nil, one.seekers[:last]
	if last == 0 {
		delete(e.of, done)
		one.stop()
	}
}
