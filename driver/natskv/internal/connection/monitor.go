package connection

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
	// firstLook is later than an answer usually comes, so that an answered request costs no look.
	firstLook = 3 * time.Millisecond
	// lastLook bounds how long a reason stays unseen on a slow network.
	lastLook = 100 * time.Millisecond
)

// requestMonitor looks for reasons why a request will get no answer, while the request waits.
//
// When rights are missing, a server reports its refusal to the connection, not to the request, and
// the handler of such errors is the user's. So the monitor checks the last error that the
// connection remembers.
type requestMonitor struct {
	nc         *nats.Conn
	supervisor *supervisor // reports each refusal, on an own connection; nil on any other
	ctx        context.Context
	began      time.Time
	before     error    // the connection's last error when the request began: not about this one
	number     uint64   // how often the connection had been replaced by then
	subjects   []string // to which the request publishes
	write      bool     // it may be applied without an answer, so not all refusals are its own
	limit      time.Duration
	answers    *lastAnswer // of requests with the same purpose
	end        context.CancelCauseFunc

	mu    sync.Mutex
	over  bool
	wait  time.Duration
	timer *time.Timer
}

// monitor returns a monitor whose context ends when a request that publishes to the subjects will
// get no answer. The cause wraps driver.ErrDenied if the server has refused it, or is ErrOffline,
// ErrLost or ErrUnanswered. Stop must be called.
//
// The limit is how long the request waits while no request with its purpose is answered; 0: until
// its context ends. While a replicated stream has no leader, requests vanish. A request that was
// not answered within a second never will be: it must be sent again, long before the lease is over.
// But thousands of elections may wait for each other, and then patience is right.
func (c *Conn) monitor(
	ctx context.Context, p Purpose, limit time.Duration, subjects []string,
) *requestMonitor {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &requestMonitor{
		nc:         c.nc,
		supervisor: c.supervisor,
		ctx:        ctx,
		began:      time.Now(),
		before:     c.nc.LastError(),
		number:     c.Number(),
		subjects:   c.withMapped(subjects),
		write:      p == Write,
		limit:      limit,
		answers:    &c.answers[p],
		end:        cancel,
		wait:       firstLook,
	}
	r.supervisor.register(r)
	r.mu.Lock() // the timer must not fire before it is stored
	r.timer = time.AfterFunc(r.wait, r.look)
	r.mu.Unlock()
	return r
}

func (r *requestMonitor) stop() {
	r.supervisor.unregister(r)
	r.mu.Lock()
	r.over = true
	r.timer.Stop()
	r.mu.Unlock()
	r.end(nil)
}

func (r *requestMonitor) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if err := r.reason(); err != nil {
		r.end(err)
		return
	}
	if time.Since(r.began) >= suspicious {
		r.supervisor.doubt()
	}
	if r.limit > 0 && r.supervisor.silence(r.answers, r.began) >= r.limit {
		r.end(ErrUnanswered)
		return
	}
	r.wait = min(2*r.wait, lastLook)
	r.timer.Reset(r.wait)
}

// hear gets a refusal at once that a look would find later, and perhaps too late: another refusal
// may have replaced it.
func (r *requestMonitor) hear(refusal error) {
	if err := r.refused(refusal); err != nil {
		r.end(err)
	}
}

// afterAnswer is a last look. The answer may belong to another request: another connection may lead
// to another cluster. And a publish to the further subjects may have been refused on the way.
func (r *requestMonitor) afterAnswer(also []string) error {
	if r.replaced() {
		return ErrLost
	}
	return r.barred(r.nc.LastError(), also)
}

// explain returns the reason why the context ended in place of the bare end.
func (r *requestMonitor) explain(err error) error {
	if cause := context.Cause(r.ctx); cause != nil && errors.Is(err, r.ctx.Err()) {
		return cause
	}
	// The connection broke after the check. For a write it is not certain that nothing was sent.
	if !r.write && (errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected)) {
		return fmt.Errorf("%w: %w", ErrOffline, err)
	}
	return err
}

func (r *requestMonitor) reason() error {
	for _, err := range []error{r.nc.LastError(), r.supervisor.inboxRefusal()} {
		if err := r.refused(err); err != nil {
			return err
		}
	}
	if r.replaced() {
		return ErrLost
	}
	return r.unsent(online(r.nc))
}

func (r *requestMonitor) replaced() bool { return r.nc.Stats().Reconnects != r.number }

// unsent does not take the end of a connection for a refusal of a write, which was sent before.
func (r *requestMonitor) unsent(err error) error {
	if r.write && err != nil {
		return ErrLost
	}
	return err
}

// refused returns the missing right if err means that this request was refused.
func (r *requestMonitor) refused(err error) error {
	prefix := inboxPrefix(r.nc.Opts.InboxPrefix)
	if !r.write && (refusesAnswers(err, prefix) || r.supervisor != nil && refusesInbox(err, prefix)) {
		return missingInbox(prefix)
	}
	return r.barred(err, r.subjects)
}

// barred returns the missing right if err means that a publish to one of the subjects was refused
// since the request began.
func (r *requestMonitor) barred(err error, subjects []string) error {
	if err == r.before { //nolint:errorlint // the same event, not one of its kind
		return nil
	}
	return missingPublish(err, subjects)
}

// isLogin reports whether an error means that the server does not know the user, or no longer does.
func isLogin(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

// CredentialsRefused adds a remedy to an error for which isLogin is true. It returns any other as
// it is.
func CredentialsRefused(err error) error {
	if !isLogin(err) {
		return err
	}
	return fmt.Errorf("%w: the server refuses the credentials (%w): check them",
		driver.ErrDenied, err)
}

func isPermission(err error) bool { return errors.Is(err, nats.ErrPermissionViolation) }

// missingPublish returns the missing right if err means that a publish to one of the subjects was
// refused.
func missingPublish(err error, subjects []string) error {
	if !isPermission(err) {
		return nil
	}
	for _, subject := range subjects {
		if strings.Contains(err.Error(), fmt.Sprintf("Publish to %q", subject)) {
			return fmt.Errorf("%w: the user may not publish to %s: grant publish on %s",
				driver.ErrDenied, subject, grantable(subject))
		}
	}
	return nil
}

// refusedSubject returns the subject of a publish that the server refused; empty if it was
// something else.
func refusedSubject(err error) string {
	if !isPermission(err) {
		return ""
	}
	_, rest, _ := strings.Cut(err.Error(), `Publish to "`)
	subject, _, _ := strings.Cut(rest, `"`)
	return subject
}

// grantable returns the subject to grant so that the next request is allowed, too: the names of
// consumers are never the same.
func grantable(subject string) string {
	if stream, ok := strings.CutPrefix(subject, FlowControl); ok {
		stream, _, _ = strings.Cut(stream, ".")
		return FlowControl + stream + ".>"
	}
	api, consumer, ok := strings.Cut(subject, CreateConsumer)
	parts := strings.SplitN(consumer, ".", 3) // the stream, the consumer's name, the keys
	if !ok || len(parts) < 3 {
		return subject
	}
	return api + CreateConsumer + parts[0] + ".*." + parts[2]
}

// refusesInbox reports whether an inbox was refused. On an own connection all inboxes are the
// store's.
func refusesInbox(err error, prefix string) bool {
	return isPermission(err) && strings.Contains(err.Error(), `Subscription to "`+prefix+".")
}

// refusesAnswers reports whether the one subscription was refused over which all answers to the
// connection's requests come. The library makes it at the first request, so this may have been long
// before the present one.
func refusesAnswers(err error, prefix string) bool {
	return refusesInbox(err, prefix) && strings.Contains(err.Error(), `.*"`)
}

func missingInbox(prefix string) error {
	return fmt.Errorf("%w: the user may not subscribe to its own inboxes: grant subscribe on %s.>",
		driver.ErrDenied, prefix)
}

func inboxPrefix(custom string) string {
	if custom != "" {
		return custom
	}
	return strings.TrimSuffix(nats.InboxPrefix, ".")
}
