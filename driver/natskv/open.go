package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
)

// openTimeout bounds Open when its context has no deadline: without a server it would never end.
const openTimeout = 5 * time.Second

// Option changes the behavior of Open.
type Option func(*opening)

type opening struct {
	create     *jetstream.KeyValueConfig // nil: the bucket must exist
	pristine   bool
	translator Translator    // nil: only candidates of Tenure take part
	own        bool          // a connection of the store's own
	connection []nats.Option // changes of that connection
}

// Open returns the elections in a bucket. The connection stays the caller's: the store changes no
// handler of it, and Store.Close does not close it. With OwnConnection the store uses another one.
// If the context has no deadline, Open gives up after 5 s. It does not wait for a connection: while
// there is none, it returns an error at once. A program that may start before its server calls Open
// again.
//
// Use errors.Is to find from the error what an operator must fix: jetstream.ErrInvalidBucketName,
// jetstream.ErrBucketNotFound (make the bucket, or pass Create), jetstream.ErrBadBucket (the stream
// of that name is not a bucket that can be written to), jetstream.ErrJetStreamNotEnabled and
// jetstream.ErrJetStreamNotEnabledForAccount, and driver.ErrDenied for a missing right. The error
// of a Translator means that the bucket cannot be shared. Most other errors are about a server that
// cannot be reached, does not answer, or cannot make the bucket.
func Open(ctx context.Context, js jetstream.JetStream, name string, opts ...Option) (*Store, error) {
	if !validName(name) {
		return nil, fmt.Errorf("natskv: bucket %q: %w: only letters, digits, - and _ may be in it",
			name, jetstream.ErrInvalidBucketName)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, openTimeout)
		defer cancel()
	}
	s, err := openBucket(ctx, js, name, settle(opts))
	if err != nil {
		return nil, fmt.Errorf("natskv: open bucket %s: %w", name, remedy(err, name))
	}
	return s, nil
}

func openBucket(ctx context.Context, js jetstream.JetStream, name string, o opening) (*Store, error) {
	conn, err := o.connect(ctx, js)
	if err != nil {
		return nil, err
	}
	b := newBucket(conn, name)
	b.pristine = o.pristine
	s := newStore(o.over(b))
	s.conn, s.presence = conn, newPresence(conn, name)
	if _, err := abandon.Run(ctx, s.calls, func() (struct{}, error) { return struct{}{}, b.prepare(ctx, o) }, abandon.NoUndo); err != nil {
		_ = s.Close() // it returns nil
		return nil, err
	}
	return s, nil
}

func settle(opts []Option) opening {
	var o opening
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func validName(name string) bool {
	for _, r := range name {
		if !inName(r) {
			return false
		}
	}
	return name != ""
}

// prepare checks that the bucket exists and can hold an election. It makes the bucket first if that
// is allowed.
func (b *bucket) prepare(ctx context.Context, o opening) error {
	info, err := b.info(ctx)
	for errors.Is(err, connection.ErrUnanswered) && ctx.Err() == nil {
		info, err = b.info(ctx)
	}
	if hasCode(err, jetstream.JSErrCodeStreamNotFound) && o.create != nil {
		if err := b.create(ctx, *o.create); err != nil {
			return err
		}
		info, err = b.info(ctx)
	}
	if err != nil {
		return err
	}
	if err := b.usable(info.Config); err != nil {
		return err
	}
	return o.suits(b)
}

// usable refuses a bucket that could never hold an election. Inspect reports unwise settings.
func (b *bucket) usable(c streamConfig) error {
	switch {
	case c.Mirror != nil:
		return fmt.Errorf("%w: stream %s is a mirror of %s, which alone can be written to: open the original",
			jetstream.ErrBadBucket, b.stream, c.Mirror.Name)
	case !slices.Contains(c.Subjects, b.stored+">"):
		return fmt.Errorf("%w: stream %s does not listen on %s>: make the bucket with the nats command, not as a stream",
			jetstream.ErrBadBucket, b.stream, b.stored)
	}
	return nil
}

// gone adds the remedy to an error of a read where the bucket was deleted.
func gone(err error, name string) error {
	if !hasCode(err, jetstream.JSErrCodeStreamNotFound) {
		return err
	}
	return fmt.Errorf("the bucket is gone: %w; the election goes on when it is there again: nats kv add %s --history 1 --storage file "+
		"--replicas N, with its former number; then, while it is empty, nats stream purge KV_%s --seq $(date +%%s%%6N)",
		err, name, name)
}

// remedy adds the remedy to an error of Open.
func remedy(err error, name string) error {
	switch {
	case errors.Is(err, driver.ErrDenied):
		return err // it names the missing right
	case hasCode(err, jetstream.JSErrCodeStreamNotFound):
		return fmt.Errorf("%w: make it with \"nats kv add %s --history 1 --storage file\", or pass natskv.Create to Open",
			jetstream.ErrBucketNotFound, name)
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: no server answers for JetStream: put \"jetstream {}\" into the server's configuration or "+
			"start it with -js, and check the JetStream domain", jetstream.ErrJetStreamNotEnabled)
	case hasCode(err, jetstream.JSErrCodeJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: put \"jetstream: enabled\" into the account's configuration",
			jetstream.ErrJetStreamNotEnabledForAccount)
	case errors.Is(err, connection.ErrOffline), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("%w: check the URL and that the server runs", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the server does not answer: %w: check that the cluster has a leader", err)
	}
	return err
}

// OwnConnection lets Open connect by itself, with a copy of the options of the connection behind
// the JetStream context, and keep that connection for the elections alone. Such a connection finds
// out within three seconds that its server is gone; one with the library's defaults takes minutes.
// The store may also replace such a connection when that helps; for a connection that carries other
// traffic, this would do harm. Open uses only the options of the given connection, which need not
// be connected. It never changes that connection, and the program may close it. If Open cannot
// connect, its error wraps a ConnectError.
//
// The copy keeps these options: the servers, the way to them (dialer, TLS, proxy, an in-process
// server), the user's identity (name and password, token, NKey, JWT, certificates, with the
// functions that fetch them, which are called for this connection, too), the prefix of inboxes and
// the time limit of connecting. It leaves out functions that are notified of something, such as
// nats.DisconnectErrHandler: they would get events of a connection that the program does not know.
// It replaces all options about pings and reconnecting. The connection sends a ping each second,
// and two may be unanswered. It reconnects endlessly, also when the server refuses the credentials,
// with pauses from 50 ms to 2 s after all servers were tried. While disconnected it buffers nothing
// to send later. Its name is that of the given one with " (elections)" appended.
//
// The opts are applied last, and may include functions that are notified of something.
//
// The store replaces the connection, by one to another server if it knows one, in three cases:
//
//   - The server is silent. When a request has waited 300 ms, the store asks the server for a sign
//     of life, and waits for it 500 ms, or four times the last round trip if that is longer.
//   - The server lives, but does not serve, for example because it has lost the rest of its
//     cluster: all writes, or all reads, have failed for 2 s with an answer that explains the
//     failure, or for 4 s without an answer. A request that its caller gave up after 300 ms or more
//     counts as one without an answer. One applied write in that time keeps the store there, even
//     if all reads failed. An answered read does so only if no write failed.
//   - The server belongs to another cluster: see ErrTwoClusters.
//
// Between two replacements the store waits an eighth of the time that the outage has lasted, at
// least 1 s and at most 30 s. Requests under way then end with errors that leave their outcome
// open.
//
// Close of the Store closes the connection.
func OwnConnection(opts ...nats.Option) Option {
	return func(o *opening) { o.own, o.connection = true, opts }
}

// ConnectError is the error of Open if OwnConnection cannot connect. It wraps driver.ErrDenied if
// the server refuses the credentials.
type ConnectError struct {
	// Err is the error of the client library, or that of the context.
	Err error
}

// Error returns the error with a remedy if the server refuses the credentials.
func (e *ConnectError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the same error as Error.
func (e *ConnectError) Unwrap() error { return connection.CredentialsRefused(e.Err) }

func (o opening) connect(ctx context.Context, given jetstream.JetStream) (*connection.Conn, error) {
	if !o.own {
		return connection.Borrow(given), nil
	}
	conn, err := abandon.Run(ctx, &abandon.Calls{}, func() (*connection.Conn, error) {
		return connection.Own(given, o.connection)
	}, (*connection.Conn).Close)
	if err != nil {
		return nil, &ConnectError{err}
	}
	return conn, nil
}

// markerTTL keeps the marker of an expired key for longer than any lease.
const markerTTL = 2 * time.Hour

// CreateOption changes the bucket that Create makes. A program may define its own.
type CreateOption func(*jetstream.KeyValueConfig)

// Create lets Open make the bucket if it is missing: file storage, history 1, one replica, no TTL,
// and markers of expired keys where the server has them (2.11 and newer). It changes no bucket that
// exists. The first leader under a new key is elected after one lease; in a new bucket Pristine
// avoids that.
//
// Where the server can do so (2.10.28, 2.11.2 and newer; in a JetStream domain 2.12), the sequences
// of the bucket begin at the present time of this machine in microseconds, so that none recurs when
// the bucket is deleted and recreated. Candidates of older releases of Tenure must not take part in
// such a bucket; docs/nats.md says why.
func Create(opts ...CreateOption) Option {
	return func(o *opening) {
		c := jetstream.KeyValueConfig{
			Description: "leader elections",
			History:     1,
			Storage:     jetstream.FileStorage,
			Replicas:    1,
		}
		for _, opt := range opts {
			opt(&c)
		}
		o.create = &c
	}
}

// Replicas sets on how many servers of a cluster the bucket is kept: 1, 3 or 5. Three survive the
// loss of one.
func Replicas(n int) CreateOption {
	return func(c *jetstream.KeyValueConfig) { c.Replicas = n }
}

// MaxBytes limits the bucket's size in bytes, which some accounts demand. An election takes fewer
// than 5,000 bytes.
func MaxBytes(n int64) CreateOption {
	return func(c *jetstream.KeyValueConfig) { c.MaxBytes = n }
}

// create makes the bucket. Several candidates may try at once: one of them succeeds, and the others
// find it.
func (b *bucket) create(ctx context.Context, c jetstream.KeyValueConfig) error {
	c.Bucket = b.name
	api := b.conn.API()
	err := b.conn.Monitored(ctx, func(ctx context.Context) error { return b.createWithin(ctx, c) },
		api+"INFO", api+"STREAM.CREATE."+b.stream)
	if errors.Is(err, jetstream.ErrBucketExists) || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

func (b *bucket) createWithin(ctx context.Context, c jetstream.KeyValueConfig) error {
	js := b.conn.JetStream()
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return err
	}
	if account.API.Level >= 1 && c.LimitMarkerTTL == 0 {
		c.LimitMarkerTTL = markerTTL
	}
	if first := b.firstSequence(c, account.API.Level, time.Now()); first > 0 {
		s := b.streamOf(c) // because jetstream.KeyValueConfig has no first sequence
		s.FirstSeq = first
		_, err = js.CreateStream(ctx, s)
		return err
	}
	_, err = js.CreateKeyValue(ctx, c)
	return err
}

const (
	// latest is in the year 2112. A clock that shows more is wrong, and terms need room above.
	latest uint64 = 1 << 52
	// fixedLevel is the JetStream API level of 2.12. From it on, every release can begin anywhere.
	fixedLevel = 2
	// longestDedupe is the longest window for duplicates that the client library gives a bucket.
	longestDedupe = 2 * time.Minute
)

// firstSequence returns the first sequence of a new bucket: the time in microseconds. It returns 0
// for a bucket that counts from 1, because the server cannot do otherwise, or not safely, because
// the records come from another bucket, or because this machine's clock is wrong.
func (b *bucket) firstSequence(c jetstream.KeyValueConfig, level int, now time.Time) uint64 {
	first := uint64(max(0, now.UnixMicro()))
	copies := c.Mirror != nil || len(c.Sources) > 0
	if !b.beginsAnywhere(level) || first < absolute || first > latest || copies || invalid(c, level) {
		return 0
	}
	return first
}

// beginsAnywhere uses the API level where JetStream may run on another server than the connected
// one.
func (b *bucket) beginsAnywhere(level int) bool {
	if b.conn.API() != jetstream.DefaultAPIPrefix {
		return level >= fixedLevel
	}
	return b.serverVersion().beginsAnywhere()
}

// invalid reports whether the client library refuses such a bucket. Then it returns its own error.
func invalid(c jetstream.KeyValueConfig, level int) bool {
	return c.History > jetstream.KeyValueMaxHistory || c.LimitMarkerTTL != 0 && level < 1
}

// streamOf returns the stream that the client library makes for a bucket without mirror and
// sources. A test compares the two.
func (b *bucket) streamOf(c jetstream.KeyValueConfig) jetstream.StreamConfig {
	s := jetstream.StreamConfig{
		Name:                   b.stream,
		Description:            c.Description,
		Subjects:               []string{b.stored + ">"},
		MaxMsgsPerSubject:      max(1, int64(c.History)),
		MaxBytes:               orUnlimited(c.MaxBytes),
		MaxAge:                 c.TTL,
		MaxMsgSize:             orUnlimited(c.MaxValueSize),
		Storage:                c.Storage,
		Replicas:               max(1, c.Replicas),
		Placement:              c.Placement,
		AllowRollup:            true,
		DenyDelete:             true,
		Duplicates:             longestDedupe,
		MaxMsgs:                -1,
		MaxConsumers:           -1,
		AllowDirect:            true,
		RePublish:              c.RePublish,
		Discard:                jetstream.DiscardNew,
		AllowMsgTTL:            c.LimitMarkerTTL != 0,
		SubjectDeleteMarkerTTL: c.LimitMarkerTTL,
		Metadata:               c.Metadata,
	}
	if c.TTL > 0 {
		s.Duplicates = min(c.TTL, longestDedupe)
	}
	if c.Compression {
		s.Compression = jetstream.S2Compression
	}
	return s
}

func orUnlimited[N int32 | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}
