package natskv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/watches"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Store is a bucket of elections. It must be made by Open, FromKeyValue or FromLegacyKeyValue. Its
// methods may be called from many goroutines. It needs Close only if it has watches or a connection
// of its own.
type Store struct {
	cells cells
	calls *abandon.Calls
	hub   *watches.Hub
	conn  *connection.Conn // nil: a handle hides it

	presence *presence // nil: a handle hides the connection
}

// cells is one way to access a bucket: bucket over a connection, handle over a client's handle that
// hides its connection. Methods may take longer than their contexts allow.
type cells interface {
	driver.Store
	source
	survey(ctx context.Context) (survey, error)
	keys(ctx context.Context) ([]string, error)
	bucket() string
}

func newStore(c cells) *Store {
	under := &abandon.Calls{}
	return &Store{cells: c, calls: under, hub: newHub(c, under)}
}

// Read returns the state of the cell. The caller may keep the value.
//
// It returns an error that wraps driver.ErrDenied if a right is missing (never from a store made by
// FromKeyValue or FromLegacyKeyValue, which cannot detect that), the error of CheckKey, and any
// other error if the state is not known.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	if err := checkKey(key); err != nil {
		return driver.Entry{}, err
	}
	e, err := abandon.Run(ctx, s.calls, func() (driver.Entry, error) { return s.cells.Read(ctx, key) }, abandon.NoUndo)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("natskv: read %s in bucket %s: %w", key, s.cells.bucket(), gone(err, s.cells.bucket()))
	}
	return e, nil
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value.
//
// It returns an error that wraps driver.ErrConflict if the version was different, and one that
// wraps driver.ErrDenied if the right to write the key is missing (with the same exception as
// Read). After an error of CheckKey nothing was sent. Any other error leaves open whether the value
// was or will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	// The call may outlast its context, and then the caller may already reuse the value.
	own := bytes.Clone(value)
	version, err := abandon.Run(ctx, s.calls, func() (driver.Version, error) {
		return s.cells.CompareAndSwap(ctx, key, prev, own)
	}, abandon.NoUndo)
	if err != nil {
		return "", fmt.Errorf("natskv: compare and swap %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return version, nil
}

// Watch calls see for every later change of the cell, in order, until stop is called. It does not
// call it for the present state. All watches of a Store share one consumer of the stream. The first
// watch creates it, and the last one ends it. Between changes the server sends a heartbeat every 2
// s and gets no requests. When the consumer, its server or the connection is lost, a new consumer
// resumes where the old one stopped.
//
// The context bounds only the set-up. If its deadline comes before there is a consumer, the watch
// begins without pushes, and says so by an entry with Lost. Errors are as for Read. After Close,
// Watch returns an error.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	stop, err = s.hub.Watch(ctx, key, see)
	if err != nil {
		return nil, fmt.Errorf("natskv: watch %s in bucket %s: %w", key, s.cells.bucket(), err)
	}
	return stop, nil
}

// Close ends all announcements and all watches, and waits for the goroutine behind the watches. It
// closes a connection made by OwnConnection. If the library is connecting at that moment, Close
// waits until it has finished. Over any other connection, which stays open, reading and writing
// still work. Close may be called more than once, but not from a function that was given to Watch.
// It returns nil.
func (s *Store) Close() error {
	s.hub.Close()
	s.presence.close()
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}

const (
	// minLease is several times as long as a server needs for a synced write on a slow disk.
	minLease = 500 * time.Millisecond

	// maxKey keeps the subject well within the 4096 bytes that a server allows a line of its
	// protocol. A longer line would end the connection, and with it every other election on it.
	maxKey = 512
)

// MinLease returns 500 ms.
func (s *Store) MinLease() time.Duration { return minLease }

// CheckKey returns an error unless NATS can hold the key: 1 to 512 letters, digits or characters of
// "-/_=.", with no dot first, last or next to another. The error names the broken rule.
func (s *Store) CheckKey(key string) error { return checkKey(key) }

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("natskv: the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("natskv: a key of %d bytes is longer than %d", len(key), maxKey)
	case key[0] == '.', key[len(key)-1] == '.', strings.Contains(key, ".."):
		return fmt.Errorf("natskv: key %q: a dot may not come first, last or next to another", key)
	}
	for _, r := range key {
		if !inKey(r) {
			return fmt.Errorf("natskv: key %q holds %q: only letters, digits and -/_=. may be in a key", key, r)
		}
	}
	return nil
}

// inKey reports whether the client library accepts the character in a key. In a subject, * and >
// are wildcards and a space ends it.
func inKey(r rune) bool {
	return inName(r) || r == '/' || r == '=' || r == '.'
}

// inName reports whether the client library accepts the character in the name of a bucket.
func inName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	}
	return r == '-' || r == '_'
}

// Keys returns the sorted keys of all values in the bucket. The client library makes a consumer for
// it, which gets the headers of the last message of each key. If no key comes for 5 s, such as when
// the server that had the consumer died, Keys makes another one. A missing right looks like silence
// until the context ends: the error never wraps driver.ErrDenied.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := abandon.Run(ctx, s.calls, func() ([]string, error) { return untilHeard(ctx, s.cells.keys) }, abandon.NoUndo)
	if err == nil {
		err = context.Cause(ctx) // the library ends a list that is not complete without an error
	}
	if err != nil {
		return nil, fmt.Errorf("natskv: list the keys in bucket %s: %w", s.cells.bucket(), gone(err, s.cells.bucket()))
	}
	all = slices.DeleteFunc(all, func(key string) bool { return checkKey(key) != nil })
	slices.Sort(all)
	return all, nil
}

func (b *bucket) keys(ctx context.Context) ([]string, error) {
	kv, err := b.conn.JetStream().KeyValue(ctx, b.name)
	if err != nil {
		return nil, err
	}
	return jetstreamKeyValue{kv}.keys(ctx)
}

func (h *handle) keys(ctx context.Context) ([]string, error) { return h.kv.keys(ctx) }

func (k jetstreamKeyValue) keys(ctx context.Context) ([]string, error) {
	return receiveAll(ctx, func(ctx context.Context) (keyLister, error) { return k.kv.ListKeys(ctx, jetstream.IgnoreDeletes()) })
}

func (k legacyKeyValue) keys(ctx context.Context) ([]string, error) {
	return receiveAll(ctx, func(ctx context.Context) (keyLister, error) { return k.kv.ListKeys(nats.Context(ctx)) })
}

// keyLister is the list of either client library.
type keyLister interface {
	Keys() <-chan string
	Stop() error
}

var errSilent = errors.New("no key came from the server in time")

// receiveAll makes a list and returns all of it. Its error is errSilent if no key came for the time
// of silence.
func receiveAll(ctx context.Context, begin func(context.Context) (keyLister, error)) (all []string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer silent.Stop()
	list, err := begin(ctx)
	if err == nil {
		defer func() { _ = list.Stop() }()
		for more := true; more; {
			var key string
			select {
			case key, more = <-list.Keys():
			case <-ctx.Done():
				more = false
			}
			if more {
				all = append(all, key)
				silent.Reset(silence)
			}
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return all, err
}

// untilHeard makes lists until one is not silent. The last error is that of ctx.
func untilHeard(ctx context.Context, list func(context.Context) ([]string, error)) ([]string, error) {
	for {
		if all, err := list(ctx); !errors.Is(err, errSilent) {
			return all, err
		}
	}
}

// Pristine lets the first election begin at once, and not after one lease, in a bucket that was
// never written to. Its storage must be files. The caller vouches that no living candidate knew an
// earlier bucket of this name: a server cannot distinguish a recreated bucket from a new one, and a
// leader of the old one trusts its lease until it notices. Use it for buckets that only the program
// itself makes and uses, for example in tests and demonstrations.
func Pristine() Option { return func(o *opening) { o.pristine = true } }
