package tenure

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
)

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = defaultID()
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	orDefault(&c.Lease, 15*time.Second)
	orDefault(&c.StopWithin, 0)
	orDefault(&c.FinishWithin, 10*time.Second)
	c.FinishWithin = max(c.FinishWithin, time.Millisecond)
	c.Tuning.setDefaults(c.Lease, c.Clock)
	return c.clone()
}

// clone shares nothing with c that either of them may change.
func (c Config) clone() Config {
	c.Metadata, c.Tuning.Retry = maps.Clone(c.Metadata), slices.Clone(c.Tuning.Retry)
	return c
}

func (t *Tuning) setDefaults(lease time.Duration, c clock.Clock) {
	orDefault(&t.Drift, c.Drift())
	orDefault(&t.Renew, lease/3)
	orDefault(&t.Precedence, lease)
	orDefault(&t.Grace, 0)
	orDefault(&t.Splay, 0)
	orDefault(&t.Poll, t.Renew)
	orDefault(&t.PollStable, max(lease, t.Poll))
	orDefault(&t.TimerLateness, protocol.TimerLateness(lease))
	if t.Retry == nil {
		t.Retry = []time.Duration{0, min(100*time.Millisecond, t.Renew/4), min(time.Second, t.Renew/2)}
	}
	if t.Backoff == nil {
		t.Backoff = doubling(lease)
	}
}

// orDefault replaces 0 by the default, and None by 0.
func orDefault[T time.Duration | float64](value *T, def T) {
	switch *value {
	case 0:
		*value = def
	case None:
		*value = 0
	}
}

// defaultID returns the same text throughout this process.
func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%.200s_%d_%s", host, os.Getpid(), random)
}

// random distinguishes processes that have one host name and one process id: in a container the
// process id is often 1.
var random = strings.ToLower(rand.Text()[:5])

// doubling returns a Backoff of one lease, then two, four, eight, and always ten after that.
func doubling(lease time.Duration) func(int) time.Duration {
	return func(n int) time.Duration {
		return lease * time.Duration(min(1<<min(n-1, 10), 10))
	}
}
