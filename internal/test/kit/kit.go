// Package kit holds the parts that the conformance kits share: drivertest for stores, and
// electiontest for elections over them.
package kit

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// Reporter is the part of testing.TB that a case needs. The kits' own tests have a Recorder
// instead.
type Reporter interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Timing says how long a case may wait, and whether the machine can delay it.
type Timing struct {
	// Left returns how long a call, a push or a fresh read may still take.
	Left func() time.Duration
	// Stalls says that the machine may stop for longer than a lease. In virtual time it never does.
	Stalls bool
}

// RealTime bounds waits by the time limit of the test binary.
func RealTime(t testing.TB) Timing {
	return Timing{Left: wait.Left, Stalls: true}
}

// virtualPatience is so long that only a faulty store exceeds it.
const virtualPatience = 10 * time.Second

// VirtualTime bounds waits by virtualPatience.
func VirtualTime() Timing {
	return Timing{Left: func() time.Duration { return virtualPatience }}
}

// Try runs a case, and says why it matters if it fails.
func Try(t *testing.T, why string, run func(t testing.TB, time Timing)) {
	t.Helper()
	try(t, why, RealTime(t), run)
}

// TryInBubble runs a case in virtual time. If the case is skipped in the bubble, the test is
// skipped.
func TryInBubble(t *testing.T, why string, run func(t testing.TB, time Timing)) {
	t.Helper()
	skipped := false
	synctest.Test(t, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		try(t, why, VirtualTime(), run)
	})
	if skipped {
		t.SkipNow()
	}
}

func try(t *testing.T, why string, time Timing, run func(t testing.TB, time Timing)) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("why: %s", why)
		}
	}()
	run(t, time)
}

// Key returns a random key that was never used. It consists of letters, digits and a hyphen, which
// every store accepts.
func Key(name string) string {
	return name + "-" + strings.ToLower(rand.Text()[:16])
}

// Brief shortens a value for a message.
func Brief(value []byte) string {
	if len(value) > 40 {
		return fmt.Sprintf("%q... (%d bytes)", value[:40], len(value))
	}
	return fmt.Sprintf("%q", value)
}
