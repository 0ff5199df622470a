package tenure

import (
	"cmp"
	"sync"
)

// maxCalls is how many store calls of a Group are under way at once. Ten thousand elections may
// want to renew, or to claim, in the same moment. Without the limit their calls would wait for the
// store, with a goroutine or more for each. Every other election has a limit of its own.
const maxCalls = 256

// callLimiter makes the store calls of a Group: urgent calls first, otherwise in the order of the
// requests. It has goroutines only while there are calls. If the store hangs, its calls time out
// (see package driver). Calls that waited for longer than their time limit then end at once.
type callLimiter struct {
	limit int // 0: maxCalls

	mu            sync.Mutex
	running       int
	urgent, other []func() // waiting calls
}

func (c *callLimiter) start(urgent bool, call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running < cmp.Or(c.limit, maxCalls):
		c.running++
		go c.work(call)
	case urgent:
		c.urgent = append(c.urgent, call)
	default:
		c.other = append(c.other, call)
	}
}

func (c *callLimiter) work(call func()) {
	for call != nil {
		call()
		call = c.next()
	}
}

// next returns the next call, or nil if there is none.
func (c *callLimiter) next() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := takeFirst(&c.urgent); call != nil {
		return call
	}
	if call := takeFirst(&c.other); call != nil {
		return call
	}
	c.running--
	return nil
}

// takeFirst removes and returns the first waiting call; nil if there is none.
func takeFirst(waiting *[]func()) func() {
	all := *waiting
	if len(all) == 0 {
		*waiting = nil
		return nil
	}
	call := all[0]
	all[0], *waiting = nil, all[1:]
	return call
}
