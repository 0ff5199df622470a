package connection

import (
	"sync/atomic"
	"time"
)

// lastAnswer is when the last answer came. Its zero value has none.
type lastAnswer struct{ at atomic.Pointer[time.Time] }

func (l *lastAnswer) note() {
	now := time.Now()
	l.at.Store(&now)
}

// silence returns for how long no answer has come to a request that was sent at a time.
func (l *lastAnswer) silence(sent time.Time) time.Duration {
	if at := l.at.Load(); at != nil && at.After(sent) {
		sent = *at
	}
	return time.Since(sent)
}
