package tenure

import "sync"

// maxCalls is how many store calls of a Group are under way at once. Ten thousand elections may
// want to renew, or to claim, in the same moment. Without the limit their calls would wait for the
// store, with a goroutine or more for each. Every other election has a limit of its own.
const maxCalls = 256

// callLimiter makes the store calls of a Group: those that are urgent first, else in the order of
// their requests. It has goroutines only while there are calls. A store that hangs gives its
// goroutines back when the calls time out (see package driver), and those that waited too long end
// at once then.
type callLimiter struct {
	mu            sync.Mutex
	running       int
	urgent, other []func() // those that wait
}

func (c *callLimiter) start(urgent bool, call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running < maxCalls:
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
	if call := first(&c.urgent); call != nil {
		return call
	}
	if call := first(&c.other); call != nil {
		return call
	}
	c.running--
	return nil
}

// first takes the first of those that wait; nil if there are none.
func first(waiting *[]func()) func() {
	all := *waiting
	if len(all) == 0 {
		*waiting = nil
		return nil
	}
	call := all[0]
	all[0], *waiting = nil, all[1:]
	return call
}
