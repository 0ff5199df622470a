package kafkalog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Store is a topic of elections. It must be made by Open and closed by Close; MinLease and CheckKey
// also work on the zero Store. Its methods may be called from many goroutines. It reads the topic
// all the time, with one goroutine, and twelve requests a minute while nothing happens.
type Store struct {
	wire   *wire
	client *kgo.Client
	ctx    context.Context // ends at Close
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	now       *stretch      // the stretch that is followed; nil while the log is being read again
	trouble   error         // the last obstacle
	since     time.Time     // since when it lasts, or when the watches last heard of it
	told      bool          // the watches know of it
	changed   chan struct{} // closed at the next change of now or trouble
	interrupt context.CancelCauseFunc
	watches   watches.Set
	queue     []*draft
	batches   []*batch // on their way
	senders   int
	latest    place // of the log that was read last
	floor     uint64
	floorOf   [16]byte // the topic of floor
}

// Read returns the state of the cell at the time of the call, or later. It asks the partition's
// leader where the log ends, and waits until the store has read up to there. The caller may keep
// the value.
//
// It returns an error that wraps driver.ErrDenied if a right is missing, the error of CheckKey, and
// any other error if the state is not known: the network failed, the topic was recreated or
// truncated, or the store is closed.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.read(ctx, key)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("kafkalog: read %s in topic %s: %w", key, s.wire.topic, err)
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	if err := admit(ctx, key, nil); err != nil {
		return driver.Entry{}, err
	}
	st, err := s.current(ctx)
	if err != nil {
		return driver.Entry{}, err
	}
	if err := s.catchUp(ctx, st); err != nil {
		return driver.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != st {
		return driver.Entry{}, st.why
	}
	return s.entry(st, key), nil
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. An empty value is a delete marker. The call returns when
// the store has read the write back from the log; an acknowledgment does not matter. The caller may
// reuse the value.
//
// It returns an error that wraps driver.ErrConflict if the version was different, and one that
// wraps driver.ErrDenied if the right to write is missing. After an error of CheckKey, for a
// version that is not from this store, or for a value longer than driver.MaxValue, nothing was
// sent. Any other error leaves open whether the value was or will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := s.swap(ctx, key, prev, value)
	if err != nil {
		return "", fmt.Errorf("kafkalog: compare and swap %s in topic %s: %w", key, s.wire.topic, err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := admit(ctx, key, value); err != nil {
		return "", err
	}
	st, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	d, err := s.draft(ctx, st, key, prev, value)
	if err != nil {
		return "", err
	}
	if err := s.await(ctx, d); err != nil {
		return "", err
	}
	return d.version(), nil
}

// admit returns why a call cannot begin.
func admit(ctx context.Context, key string, value []byte) error {
	if len(value) > driver.MaxValue {
		return fmt.Errorf("a value of %d bytes is longer than %d", len(value), driver.MaxValue)
	}
	if err := checkKey(key); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Close ends all calls and watches and the connections, and waits for the goroutines behind them.
// It may be called more than once, but not from a function that was given to Watch. It returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	s.watches.StopAll()
	s.mu.Unlock()
	s.stop()
	s.lose(errClosed) // from here on no call begins anything
	s.work.Wait()
	s.client.Close()
	return nil
}
