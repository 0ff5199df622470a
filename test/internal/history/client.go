package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Client is one of several that work on the cell at the same time.
type Client struct {
	// ID is unique among the clients.
	ID int
	// Attention is how long the client waits for an answer.
	Attention time.Duration
	// Rand decides its next call.
	Rand *rand.Rand
}

// Play reads and writes until the context ends. After a failed write it sometimes writes again over
// the same version. The store must refuse that if another write came between.
func (h *History) Play(ctx context.Context, s driver.Store, c Client) {
	version, known := driver.Version(""), false
	for n := 0; ctx.Err() == nil; n++ {
		attempt, cancel := context.WithTimeout(context.Background(), c.Attention)
		if known && c.Rand.IntN(3) > 0 {
			if next, ok := h.Swap(attempt, s, c.ID, version, fmt.Sprintf("%d-%d", c.ID, n)); ok {
				version = next
			} else {
				known = c.Rand.IntN(2) > 0
			}
		} else if next, ok := h.Read(attempt, s, c.ID); ok {
			version, known = next, true
		}
		cancel()
		time.Sleep(time.Duration(c.Rand.IntN(4000)) * time.Microsecond)
	}
}

// Lasting returns a context for Play. It ends when the time has passed and enough has happened,
// which may take longer on a busy machine. The time limit of the tests ends it as well.
func Lasting(least time.Duration, enough func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := wait.Background()
	go func() {
		for wait := least; ctx.Err() == nil; wait = 50 * time.Millisecond {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			if enough() {
				cancel()
			}
		}
	}()
	return ctx, cancel
}
