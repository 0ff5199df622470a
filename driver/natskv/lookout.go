package natskv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

const (
	// firstLook is later than an answer takes, so that a request that is answered costs no look.
	firstLook = 3 * time.Millisecond
	// lastLook bounds how long a reason stays unseen on a slow network.
	lastLook = 100 * time.Millisecond
)

// errLost ends a request whose connection is gone. The library would let it wait for an answer that has nowhere to come.
var errLost = errors.New("the connection was lost before the answer came")

// lookout looks, while one request waits for its answer, for reasons why none will come.
//
// A server tells the connection that it refuses a request for want of rights, not the request, and the handler of such
// errors is the user's. What is left to look at is the last error that the connection remembers.
type lookout struct {
	nc       *nats.Conn
	before   error    // the connection's last error when the request began: not about this one
	connects uint64   // how often the connection had been made anew by then
	subjects []string // what the request publishes to
	reading  bool     // a write that was applied but could not be answered must not count as refused
	found    context.CancelCauseFunc

	mu    sync.Mutex
	over  bool
	wait  time.Duration
	timer *time.Timer
}

// lookOut returns a context that ends when there will be no answer to a request that publishes to the subjects. Its cause
// wraps driver.ErrDenied if the server has refused it, or is errOffline or errLost. Stop must be called.
func lookOut(ctx context.Context, nc *nats.Conn, reading bool, subjects ...string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &lookout{
		nc:       nc,
		before:   nc.LastError(),
		connects: nc.Stats().Reconnects,
		subjects: subjects,
		reading:  reading,
		found:    cancel,
		wait:     firstLook,
	}
	l.mu.Lock() // the timer must not fire before it is stored
	l.timer = time.AfterFunc(l.wait, l.look)
	l.mu.Unlock()
	return ctx, l.stop
}

func (l *lookout) stop() {
	l.mu.Lock()
	l.over = true
	l.timer.Stop()
	l.mu.Unlock()
	l.found(nil)
}

func (l *lookout) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if err := l.reason(); err != nil {
		l.found(err)
		return
	}
	l.wait = min(2*l.wait, lastLook)
	l.timer.Reset(l.wait)
}

func (l *lookout) reason() error {
	if err := l.refused(l.nc.LastError()); err != nil {
		return err
	}
	if l.nc.Stats().Reconnects != l.connects {
		return errLost
	}
	return online(l.nc)
}

// refused returns what is missing if err says that this request was refused.
func (l *lookout) refused(err error) error {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	text, prefix := err.Error(), inboxPrefix(l.nc.Opts.InboxPrefix)
	if l.reading && isMuted(text, prefix) {
		return fmt.Errorf("%w: the user may not subscribe to its own inboxes: grant subscribe on %s.>", driver.ErrDenied, prefix)
	}
	if err == l.before { //nolint:errorlint // the same event, not one of its kind
		return nil
	}
	for _, subject := range l.subjects {
		if strings.Contains(text, fmt.Sprintf("Publish to %q", subject)) {
			return fmt.Errorf("%w: the user may not publish to %s: grant publish on it", driver.ErrDenied, subject)
		}
	}
	return nil
}

// isMuted reports whether the text says that the one subscription was refused over which all answers to the connection's
// requests come. The library makes it at the first request, so this may have been long before the present one.
func isMuted(text, prefix string) bool {
	return strings.Contains(text, `Subscription to "`+prefix+".") && strings.Contains(text, `.*"`)
}

func inboxPrefix(custom string) string {
	if custom != "" {
		return custom
	}
	return strings.TrimSuffix(nats.InboxPrefix, ".")
}
