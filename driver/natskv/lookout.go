package natskv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// errUnanswered ends a request that has waited for long enough.
var errUnanswered = fmt.Errorf("the server gave no answer in time: %w", context.DeadlineExceeded)

// lookout looks, while one request waits for its answer, for reasons why none will come.
//
// A server tells the connection that it refuses a request for want of rights, not the request, and the handler of such
// errors is the user's. What is left to look at is the last error that the connection remembers.
type lookout struct {
	nc       *nats.Conn
	keep     *keeper // tells of each refusal, on an own connection; nil on any other
	ctx      context.Context
	began    time.Time
	before   error    // the connection's last error when the request began: not about this one
	connects uint64   // how often the connection had been made anew by then
	subjects []string // what the request publishes to
	reading  bool     // a write that was applied but could not be answered must not count as refused
	found    context.CancelCauseFunc

	mu    sync.Mutex
	over  bool
	wait  time.Duration
	limit time.Duration // of quiet, until the request is given up; 0: its context's end
	pulse *pulse
	timer *time.Timer
}

// lookOut returns one whose context ends when there will be no answer to a request that publishes to the subjects. Its cause
// wraps driver.ErrDenied if the server has refused it, or is errOffline or errLost. Stop must be called.
func (b *bucket) lookOut(ctx context.Context, reading bool, subjects ...string) *lookout {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &lookout{
		nc:       b.nc,
		keep:     b.keep,
		ctx:      ctx,
		began:    time.Now(),
		before:   b.nc.LastError(),
		connects: b.nc.Stats().Reconnects,
		subjects: b.mapped(subjects),
		reading:  reading,
		found:    cancel,
		wait:     firstLook,
	}
	l.keep.attend(l)
	l.mu.Lock() // the timer must not fire before it is stored
	l.timer = time.AfterFunc(l.wait, l.look)
	l.mu.Unlock()
	return l
}

// mapped adds the subjects that a server in a JetStream domain makes of ours before it looks at rights.
func (b *bucket) mapped(subjects []string) []string {
	if b.api == jetstream.DefaultAPIPrefix {
		return subjects
	}
	all := subjects
	for _, subject := range subjects {
		bare, ours := strings.CutPrefix(subject, b.api)
		switch {
		case !ours:
		case strings.HasPrefix(bare, b.stored):
			all = append(all, bare)
		default:
			all = append(all, jetstream.DefaultAPIPrefix+bare)
		}
	}
	return all
}

func (l *lookout) stop() {
	l.keep.leave(l)
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
	if time.Since(l.began) >= suspicious {
		l.keep.doubt()
	}
	if l.limit > 0 && l.keep.quiet(l.pulse, l.began) >= l.limit {
		l.found(errUnanswered)
		return
	}
	l.wait = min(2*l.wait, lastLook)
	l.timer.Reset(l.wait)
}

// limitTo has the request given up when neither it nor any like it was answered for so long. While a replicated stream is
// without a leader requests vanish, and one that was not answered within a second never will be: it must be sent again, and
// that better long before the lease is over. But thousands of elections may wait for each other, and then patience is right.
func (l *lookout) limitTo(d time.Duration, p *pulse) {
	l.mu.Lock()
	l.limit, l.pulse = d, p
	l.mu.Unlock()
}

// hear is told at once what a look finds later, and perhaps too late: another refusal may have taken its place.
func (l *lookout) hear(complaint error) {
	if err := l.refused(complaint); err != nil {
		l.found(err)
	}
}

// late is a last look after the answer. It may be none to this request: another connection may lead to another cluster. And
// what else was published for its sake may have been refused on the way.
func (l *lookout) late(also []string) error {
	if l.nc.Stats().Reconnects != l.connects {
		return errLost
	}
	return l.barred(l.nc.LastError(), also)
}

func (l *lookout) reason() error {
	for _, err := range []error{l.nc.LastError(), l.keep.isMuted()} {
		if err := l.refused(err); err != nil {
			return err
		}
	}
	if l.nc.Stats().Reconnects != l.connects {
		return errLost
	}
	return l.sent(online(l.nc))
}

// sent takes from the end of a connection that it was a refusal, because it came after the write.
func (l *lookout) sent(err error) error {
	if l.reading || err == nil {
		return err
	}
	return errLost
}

// refused returns what is missing if err says that this request was refused.
func (l *lookout) refused(err error) error {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	text, prefix := err.Error(), inboxPrefix(l.nc.Opts.InboxPrefix)
	if l.reading && (isMuted(text, prefix) || l.keep != nil && isUnheard(err, prefix)) {
		return fmt.Errorf("%w: the user may not subscribe to its own inboxes: grant subscribe on %s.>", driver.ErrDenied, prefix)
	}
	return l.barred(err, l.subjects)
}

// barred returns what is missing if err says that a publish to one of the subjects was refused.
func (l *lookout) barred(err error, subjects []string) error {
	if err == l.before || !errors.Is(err, nats.ErrPermissionViolation) { //nolint:errorlint // the same event, not one of its kind
		return nil
	}
	for _, subject := range subjects {
		if strings.Contains(err.Error(), fmt.Sprintf("Publish to %q", subject)) {
			return fmt.Errorf("%w: the user may not publish to %s: grant publish on %s", driver.ErrDenied, subject, grantable(subject))
		}
	}
	return nil
}

// refusedSubject is to what the server refused a publish; empty if it was something else.
func refusedSubject(err error) string {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return ""
	}
	_, rest, _ := strings.Cut(err.Error(), `Publish to "`)
	subject, _, _ := strings.Cut(rest, `"`)
	return subject
}

// grantable is what to grant so that the next request may be made too: the names of consumers are never the same.
func grantable(subject string) string {
	if stream, ok := strings.CutPrefix(subject, flowControl); ok {
		stream, _, _ = strings.Cut(stream, ".")
		return flowControl + stream + ".>"
	}
	api, consumer, ok := strings.Cut(subject, createConsumer)
	parts := strings.SplitN(consumer, ".", 3) // the stream, the consumer's name, the keys
	if !ok || len(parts) < 3 {
		return subject
	}
	return api + createConsumer + parts[0] + ".*." + parts[2]
}

// isMuted reports whether the text says that the one subscription was refused over which all answers to the connection's
// requests come. The library makes it at the first request, so this may have been long before the present one.
func isMuted(text, prefix string) bool {
	return strings.Contains(text, `Subscription to "`+prefix+".") && strings.Contains(text, `.*"`)
}

// isUnheard reports whether an inbox was refused. On an own connection all of them are ours.
func isUnheard(err error, prefix string) bool {
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `Subscription to "`+prefix+".")
}

func inboxPrefix(custom string) string {
	if custom != "" {
		return custom
	}
	return strings.TrimSuffix(nats.InboxPrefix, ".")
}
