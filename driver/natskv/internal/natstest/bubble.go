package natstest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// InBubble runs a test in virtual time. Servers that it starts are within the bubble.
func InBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	PrepareBubbles()
	EmptyPools()
	defer EmptyPools()
	synctest.Test(t, test)
}

// Virtual reports whether the caller is in a bubble, whose clock starts in the year 2000.
func Virtual() bool { return time.Now().Year() < 2020 }

// PrepareBubbles starts the clock that all servers of a process share. The first server would start
// it, and that must not be in a bubble.
var PrepareBubbles = sync.OnceFunc(ats.Register)

// EmptyPools drops the timers that the client library keeps for later use: none may pass from one
// bubble to another.
func EmptyPools() {
	runtime.GC()
	runtime.GC()
}
