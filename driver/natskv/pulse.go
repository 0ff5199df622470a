package natskv

import (
	"sync/atomic"
	"time"
)

// pulse is when the last answer came. Its zero value has none.
type pulse struct{ last atomic.Pointer[time.Time] }

func (p *pulse) beat() {
	now := time.Now()
	p.last.Store(&now)
}

// quiet is for how long no answer has come, though one was waited for from then on.
func (p *pulse) quiet(from time.Time) time.Duration {
	if last := p.last.Load(); last != nil && last.After(from) {
		from = *last
	}
	return time.Since(from)
}
