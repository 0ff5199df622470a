// Package connection sends the requests of a store over NATS, and reports why one gets no answer.
// The client library lets a request wait for its context if a right is missing, the connection is
// lost or the server is cut off from its cluster; a leader would find out when its lease is over.
// So each request is monitored, and a supervisor replaces a connection of the store's own that
// fails. The package knows requests and answers. It knows nothing of buckets and elections.
package connection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
)

// Conn is a connection to JetStream. Its methods may be called from many goroutines.
type Conn struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	api        string      // prefix of the JetStream API's subjects
	supervisor *supervisor // nil: the connection is the caller's
	end        func()
	answers    [purposes]lastAnswer
	reads      chan struct{} // held by the reads that wait for an answer
}

func over(js jetstream.JetStream, end func()) *Conn {
	return &Conn{
		nc: js.Conn(), js: js, api: apiPrefix(js.Options()), end: end, reads: make(chan struct{}, readsAtOnce),
	}
}

// Borrow returns a Conn over the caller's connection. It changes no option and no handler of it,
// and never reconnects or closes it.
func Borrow(js jetstream.JetStream) *Conn { return over(js, func() {}) }

// Own connects with a copy of the options of the given context's connection, changed for elections
// and then by opts. A supervisor replaces the connection when it fails. Close must be called.
func Own(given jetstream.JetStream, opts []nats.Option) (*Conn, error) {
	o, err := settings(given.Conn().Opts, opts)
	if err != nil {
		return nil, err
	}
	s := supervise(&o)
	c, err := dial(o, given)
	if err != nil {
		return nil, err
	}
	s.start(c.nc)
	c.supervisor, c.end = s, s.close
	return c, nil
}

// To connects to one server alone, with the credentials and the JetStream prefix of this
// connection. The new connection ends at its first loss. Close must be called.
func (c *Conn) To(server string, within time.Duration) (*Conn, error) {
	o, err := settings(c.nc.Opts, []nats.Option{
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default one prints
		nats.NoReconnect(),
		nats.IgnoreDiscoveredServers(),
		nats.Timeout(within),
	})
	if err != nil {
		return nil, err
	}
	o.Url, o.Servers = server, nil
	return dial(o, c.js)
}

// dial connects. It accesses JetStream as the given context does.
func dial(o nats.Options, like jetstream.JetStream) (*Conn, error) {
	nc, err := o.Connect()
	if err != nil {
		return nil, err
	}
	js, err := sameContext(nc, like.Options())
	if err != nil {
		nc.Close()
		return nil, err
	}
	return over(js, nc.Close), nil
}

// Close closes the connection unless it is borrowed.
func (c *Conn) Close() { c.end() }

// NATS returns the connection of the client library.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// JetStream returns the client library's context.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// API returns the prefix of the JetStream API's subjects.
func (c *Conn) API() string { return c.api }

// Number returns how often the connection was replaced. Another number is another connection, which
// may lead to another server.
func (c *Conn) Number() uint64 { return c.nc.Stats().Reconnects }

// MoveOn leaves the present server for another one, unless the connection is borrowed or was
// replaced just now.
func (c *Conn) MoveOn() { c.supervisor.moveOn() }

func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix == "":
		return jetstream.DefaultAPIPrefix
	case o.APIPrefix[len(o.APIPrefix)-1] != '.':
		return o.APIPrefix + "."
	}
	return o.APIPrefix
}

// sameContext returns a context like the given one over another connection.
func sameContext(nc *nats.Conn, o jetstream.JetStreamOptions) (jetstream.JetStream, error) {
	switch {
	case o.Domain != "":
		return jetstream.NewWithDomain(nc, o.Domain)
	case o.APIPrefix != "":
		return jetstream.NewWithAPIPrefix(nc, o.APIPrefix)
	}
	return jetstream.New(nc)
}

const (
	// A connection without any traffic is found dead after the ping that follows the last one that
	// may be unanswered: 3 s.
	pingEvery   = time.Second
	pingsAtRisk = 2
	// writePatience is how long one write may take to leave, under the library's lock.
	writePatience = 2 * time.Second

	// The pause after all servers were tried grows from the first to the last.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// settings returns a copy of the options, fit for elections and then changed by the program's own.
func settings(of nats.Options, change []nats.Option) (nats.Options, error) {
	if of.Name == "" {
		of.Name = "tenure"
	}
	of.Name += " (elections)"
	dropHandlers(&of)
	of.AllowReconnect, of.MaxReconnect, of.RetryOnFailedConnect = true, -1, false
	of.IgnoreAuthErrorAbort = true
	of.CustomReconnectDelayCB = retryAfter
	of.ReconnectBufSize, of.FlusherTimeout, of.ReconnectOnFlusherError = -1, writePatience, true
	of.PingInterval, of.MaxPingsOut = pingEvery, pingsAtRisk
	of.UseOldRequestStyle, of.Verbose = false, false
	for _, set := range change {
		if set == nil {
			continue
		}
		if err := set(&of); err != nil {
			return nats.Options{}, fmt.Errorf("an option of OwnConnection: %w", err)
		}
	}
	return of, nil
}

// dropHandlers removes all functions of the program that are notified of something. It keeps
// functions that fetch or choose something.
func dropHandlers(o *nats.Options) {
	o.ClosedCB, o.DisconnectedCB, o.DisconnectedErrCB, o.ReconnectErrCB = nil, nil, nil, nil
	o.ConnectedCB, o.ReconnectedCB, o.DiscoveredServersCB = nil, nil, nil
	o.AsyncErrorCB, o.LameDuckModeHandler = nil, nil
	o.NoCallbacksAfterClientClose = true
}

// retryAfter returns the pause after all servers were tried. It is half fixed and half random,
// since all clients of a cluster lose it together.
func retryAfter(rounds int) time.Duration {
	d := lastRetry
	if rounds < 6 {
		d = min(firstRetry<<rounds, lastRetry)
	}
	return d/2 + rand.N(d/2)
}

// Beginnings of subjects, those of the JetStream API without its prefix.
const (
	CreateConsumer = "CONSUMER.CREATE."
	FlowControl    = "$JS.FC."
	keyValues      = "$KV."
)

// ErrOffline is the reason for a request that was not sent. The library would keep it and send it
// after it has connected again, long after the caller has given up.
var ErrOffline error = offlineError{}

// offlineError is a driver.ErrConnecting in the words of NATS.
type offlineError struct{}

func (offlineError) Error() string        { return "not connected to a server" }
func (offlineError) Is(target error) bool { return target == driver.ErrConnecting }

// ErrLost ends a request whose connection is gone. The library would let it wait for an answer that
// cannot come.
var ErrLost = errors.New("the connection was lost before the answer came")

// ErrUnanswered ends a request that has waited for long enough.
var ErrUnanswered = fmt.Errorf("the server gave no answer in time: %w", context.DeadlineExceeded)

// Purpose is the purpose of a request.
type Purpose int

// A request reads a key, writes a key, or is for anything else.
const (
	Read Purpose = iota
	Write
	Other
	purposes
)

// Request sends one message and returns the one answer. It never repeats. If there will be no
// answer, it ends before its context, with an error that wraps driver.ErrDenied if the server
// refused the request, or ErrOffline, ErrLost or ErrUnanswered.
//
// A Write is sent over the connection of this Number alone, since the caller knows where that
// leads. If the connection was replaced it is not sent, and the error is ErrLost. Also are subjects
// to which something was published for the sake of this request, before it.
func (c *Conn) Request(
	ctx context.Context, number uint64, m *nats.Msg, p Purpose, also ...string,
) (*nats.Msg, error) {
	if err := c.supervisor.explain(online(c.nc)); err != nil {
		return nil, err
	}
	limit := c.supervisor.answerWithin()
	if len(also) > 0 { // more than one request may need the consent of the whole cluster
		limit = 0
	}
	r := c.monitor(ctx, p, limit, append([]string{m.Subject}, also...))
	defer r.stop()
	if p == Write && r.number != number {
		return nil, ErrLost
	}
	answer, err := c.nc.RequestMsgWithContext(r.ctx, m)
	if err != nil {
		err = r.explain(err)
		c.supervisor.unanswered(r.began, p, err)
		return nil, err
	}
	c.answers[p].note()
	c.supervisor.answered(answer, p)
	return answer, r.afterAnswer(also)
}

// Monitored calls a function that makes requests to the subjects through the client library. When
// there will be no answer, the context that it passes ends, and the error gives the reason.
func (c *Conn) Monitored(
	ctx context.Context, do func(context.Context) error, subjects ...string,
) error {
	r := c.monitor(ctx, Other, 0, subjects)
	defer r.stop()
	return r.explain(do(r.ctx))
}

// online returns nil if a request can be sent now.
func online(nc *nats.Conn) error {
	switch status := nc.Status(); status {
	case nats.CONNECTED, nats.DRAINING_SUBS, nats.DRAINING_PUBS:
		return nil
	case nats.CLOSED:
		return closed(nc.LastError())
	default:
		return offline(status, nc.LastError())
	}
}

// offline returns ErrOffline with the last server's message, for example that it has too many
// clients. That message is text only: the next server may answer differently.
func offline(status nats.Status, last error) error {
	if last == nil {
		return fmt.Errorf("%w (%s)", ErrOffline, status)
	}
	return fmt.Errorf("%w (%s): %s", ErrOffline, status, last.Error())
}

// closed returns why a connection is closed, by its last error.
func closed(last error) error {
	if isLogin(last) {
		return CredentialsRefused(last)
	}
	return nats.ErrConnectionClosed
}

// withMapped adds the subjects into which a server in a JetStream domain turns ours before it
// checks rights.
func (c *Conn) withMapped(subjects []string) []string {
	if c.api == jetstream.DefaultAPIPrefix {
		return subjects
	}
	all := subjects
	for _, subject := range subjects {
		bare, ours := strings.CutPrefix(subject, c.api)
		switch {
		case !ours:
		case strings.HasPrefix(bare, keyValues):
			all = append(all, bare)
		default:
			all = append(all, jetstream.DefaultAPIPrefix+bare)
		}
	}
	return all
}

const (
	// refusedWithin bounds the wait for a refusal of a subscription or a question.
	refusedWithin = 2 * time.Second
	// The limits of the messages that wait for the handler of a subscription.
	pendingMessages = 1024
	pendingBytes    = 1 << 20
	// The limits of the answers to one question, which anyone can send.
	maxAnswers     = 10_000
	maxAnswerBytes = 16 << 20
)

// Subscribe calls the handler for each message to the subject. Without a connection the library
// subscribes later. If the server refuses the subscription, the error wraps driver.ErrDenied.
func (c *Conn) Subscribe(ctx context.Context, subject string, handle nats.MsgHandler) (*nats.Subscription, error) {
	before := c.nc.LastError()
	sub, err := c.nc.Subscribe(subject, handle)
	if err != nil {
		return nil, err
	}
	// It fails only if the subscription has ended.
	_ = sub.SetPendingLimits(pendingMessages, pendingBytes)
	ctx, cancel := context.WithTimeout(ctx, refusedWithin)
	defer cancel()
	if c.nc.FlushWithContext(ctx) != nil {
		return sub, nil // a refusal may still come, but nothing waits for it
	}
	if err := c.nc.LastError(); err != before && refusesSubscription(err, subject) { //nolint:errorlint // the same event, not one of its kind
		_ = sub.Unsubscribe()
		return nil, fmt.Errorf("%w: the user may not subscribe to %s: grant subscribe on it", driver.ErrDenied, subject)
	}
	return sub, nil
}

func refusesSubscription(err error, subject string) bool {
	return isPermission(err) && strings.Contains(err.Error(), fmt.Sprintf("Subscription to %q", subject))
}

// Ask publishes one message and returns all answers that come within the given time. It returns
// none at once if no client has subscribed to the subject. The error wraps driver.ErrDenied if a
// right is missing, and is ErrOffline without a connection.
func (c *Conn) Ask(ctx context.Context, subject string, body []byte, within time.Duration) ([]*nats.Msg, error) {
	if err := c.supervisor.explain(online(c.nc)); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r := c.monitor(bounded, Other, 0, []string{subject})
	defer r.stop()
	all, err := c.collect(r.ctx, subject, body)
	err = r.explain(err)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the time is over
		err = r.lateRefusal(ctx)
	}
	return all, err
}

// lateRefusal returns the missing right of a request whose refusal may be under way. A server
// refuses what was sent before a flush before it answers that.
func (r *requestMonitor) lateRefusal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refusedWithin)
	defer cancel()
	if r.nc.FlushWithContext(ctx) != nil {
		return nil // a refusal may still come, but nothing waits for it
	}
	return r.refused(r.nc.LastError())
}

// collect returns the answers that come until the context ends.
func (c *Conn) collect(ctx context.Context, subject string, body []byte) (all []*nats.Msg, err error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	for size := 0; len(all) < maxAnswers && size < maxAnswerBytes; {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, nil
		case err != nil:
			return all, err
		}
		all, size = append(all, m), size+len(m.Data)
	}
	return all, nil
}

// readsAtOnce is how many reads of one store wait for the server's answer at a time. The rest wait
// here, where they cost the server nothing. When the server is slow, all followers want to read,
// and 10,000 reads in its queue would delay the renewals of the leaders. Writes do not wait.
const readsAtOnce = 128

// AcquireRead waits until one more read may be sent. Release must be called unless it fails.
func (c *Conn) AcquireRead(ctx context.Context) (release func(), err error) {
	select {
	case c.reads <- struct{}{}:
		return func() { <-c.reads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
