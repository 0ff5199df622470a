// Package kafkalog holds elections in a topic of Kafka, without consumer groups and without
// transactions. Use it where a service already talks to Kafka.
//
//	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")}
//	store, err := kafkalog.Open(ctx, connection, "billing.elections")
//
// # What it relies on
//
// Kafka has no compare-and-swap, but all readers see a partition's log in the same order. Every
// write is appended, and the order decides which writes take effect. All readers decide alike, from
// the earlier records alone. A record states how far its writer had read the log, and which record
// it replaces, if its writer saw one.
//
//   - A record takes no effect if more than 4,096 records stand between the last one that its
//     writer had read and itself.
//   - A record that replaces another takes effect if that other one is the last record of its key
//     that took effect, or if the reader has seen none of its key take effect.
//   - A record that replaces none takes effect if no record of its key, effective or not, stands
//     between the last record that its writer had read and itself.
//
// So a write has no effect if it is late, if a proxy or a client repeats it, or if its client is
// behind. An acknowledgment does not mean success: a write counts when it was read back. A lost
// acknowledgment costs nothing.
//
// The version of a cell is the offset of its record, together with a random number that the writer
// drew. The floor of the terms is the end of the log. All elections of a topic are in its partition
// 0, even if it has others. docs/adr/0008-kafka-log.md explains why, and why a new reader need not
// read the whole log.
//
// # The topic
//
// If the topic does not exist, [Open] creates it. It has one partition on three brokers, and two of
// them must store a write. Its settings are cleanup.policy delete, retention.ms -1, retention.bytes
// 64 MiB, segment.bytes 16 MiB, message.timestamp.type LogAppendTime, and no unclean elections.
// Open refuses an existing topic with compaction, with retention by time, with retention.bytes
// below 16 MiB, or with unclean elections, because each of these removes records that decide about
// later ones. It also refuses max.message.bytes below 64 KiB, too few for the renewals of many
// elections. [Store.Inspect] names these and lesser faults, with the remedy.
//
// The log stays below retention.bytes plus two segments. The record of a live election stays near
// the end, since its leader renews it. Kafka removes the record of an idle election when renewals
// of other elections have filled that space. Then its cell is absent, so candidates wait for a
// lease, and its terms go on above the floor. A lease must be short compared with the time in which
// 64 MiB are written: at 450 bytes a record, a thousand elections that renew every 5 s take 12
// minutes. Inspect compares them.
//
// A candidate may claim a new election at once, until the partition's leader changes for the first
// time. After that, it first waits one lease: no broker can vouch for the records of other brokers.
//
// # What it costs
//
// A store is one client, one goroutine and one fetch that waits for new records: 12 requests a
// minute while there are none, and one for each record, or for several that come together. A
// renewal is one produce request, which also carries those of other elections that are due. A read
// asks the leader where the log ends. A thousand elections, or ten thousand, share this. Every
// member reads the whole topic, about 450 bytes for every renewal of any election. Use several
// topics if that is too much.
//
// # Rights
//
// A candidate needs Read, Write and Describe on the topic, an observer Read and Describe. Create on
// the topic lets Open create it, and DescribeConfigs lets Open and Inspect read its settings. A
// missing right comes back as driver.ErrDenied.
//
// # Calls
//
// A call is one attempt, and ends with its context. A write that is on its way by then may still be
// appended; it takes effect only if no other write came first. If a topic was recreated or
// truncated, all calls under way fail. Then the store reads the log again and trusts nothing of the
// old one. A Store's floor never falls within one topic. In a recreated topic, candidates that knew
// the old one go on above its terms. A new process may lead with a lower term. While an old leader
// is cut off, a new process could also lead beside it. So before you delete a topic, stop all
// candidates and wait one lease; then reset the tokens that resources remember. docs/kafka.md shows
// how to keep the tokens rising.
//
// # Limits
//
// The shortest lease is 1 s. All candidates of a topic must use this package. The store skips
// records of other programs, and [Store.Inspect] reports them; Open refuses a topic that holds only
// such records, or records of a later format. Brokers and client must support the ids of topics,
// which came with Kafka 2.8: Open refuses older brokers, and kgo.MaxVersions below that.
package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/tenure-go/tenure/driver/watches"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
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

// maxKey is the longest key in bytes.
const maxKey = 249

// minLease is about as long as a healthy Kafka broker may take to answer.
const minLease = time.Second

var errKey = errors.New("not a key that this store holds")

// MinLease returns 1 s: a write is one round trip to three brokers and one back from the log.
func (s *Store) MinLease() time.Duration { return minLease }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// CheckKey returns an error unless the key is 1 to 249 bytes of printable UTF-8. Keys are not
// normalized: keys that differ are different cells.
func (s *Store) CheckKey(key string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("kafkalog: %w", err)
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", errKey)
	case len(key) > maxKey:
		return fmt.Errorf("%w: it has %d bytes, and %d is the most", errKey, len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not UTF-8", errKey, key)
	case strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: %q holds characters that cannot be printed", errKey, key)
	}
	return nil
}

// Keys returns the sorted keys of all cells that hold a value at the time of the call, or later. It
// needs the same rights as Read. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := s.keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: list the keys in topic %s: %w", s.wire.topic, err)
	}
	slices.Sort(all)
	return all, nil
}

func (s *Store) keys(ctx context.Context) (all []string, err error) {
	st, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx, st); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != st {
		return nil, st.why
	}
	for key, t := range st.fold.trails {
		if t.state != nil && len(t.state.value) > 0 && checkKey(key) == nil {
			all = append(all, key)
		}
	}
	return all, nil
}

// CheckRights returns an error that wraps driver.ErrDenied if the right to write to the topic is
// missing. It asks a broker for this user's rights to the topic, and writes nothing. Brokers before
// Kafka 2.3 do not report them; then it returns nil. It returns the error of CheckKey, and any
// other error if no broker answers.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	if err := admit(ctx, key, nil); err != nil {
		return err
	}
	t, err := s.wire.describe(ctx, true)
	if err == nil && !mayWrite(t.AuthorizedOperations) {
		err = fmt.Errorf("%w: the user may not write to the topic: grant Write on it", driver.ErrDenied)
	}
	if err != nil {
		err = broker.Denied(err)
		return fmt.Errorf("kafkalog: check the right to write to topic %s: %w", s.wire.topic, err)
	}
	return nil
}

// mayWrite reads a set of operations, which has a bit for each. A set without Describe, which was
// needed to get it, cannot be right: the broker does not report rights.
func mayWrite(operations int32) bool {
	const told, write = 1 << kmsg.ACLOperationDescribe, 1 << kmsg.ACLOperationWrite
	return operations < 0 || operations&told == 0 || operations&write != 0
}

// endings are the answers after which reading cannot continue from the present state.
var endings = []error{kerr.OffsetOutOfRange, errDiverged}

// requestFailed returns the error of a call whose own request failed. Unless the caller gave up,
// the partition may have another leader now, so the follower of the log looks for it.
func (s *Store) requestFailed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	err = broker.Denied(err)
	if !errors.Is(err, driver.ErrDenied) {
		s.kick()
	}
	return err
}

// news are the calls to make once the lock is released.
type news struct {
	to    []*watches.Watch
	entry driver.Entry
}

func tell(all []news) {
	for _, n := range all {
		watches.Push(n.to, n.entry)
	}
}

// Watch calls see for every later change of the cell, in order, until stop is called. It also calls
// see for the present state each time the store had to read the log again. It costs no request and
// no goroutine: the store reads the log anyway.
//
// The context is not used: there is nothing to set up. Watch returns the error of CheckKey, and an
// error after Close.
func (s *Store) Watch(_ context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("kafkalog: watch: %w", err)
	}
	w := watches.New(key, see)
	lost, err := s.add(w)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: watch %s in topic %s: %w", key, s.wire.topic, err)
	}
	if lost != nil {
		see(driver.Entry{Lost: lost})
		if s.hears() { // since a moment ago
			see(driver.Entry{Unverified: true})
		}
	}
	return func() {
		if w.Stop() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.watches.Remove(w)
		}
	}, nil
}

// add returns why nothing is pushed at present, if that is so.
func (s *Store) add(w *watches.Watch) (lost, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.trouble, errClosed) {
		return nil, errClosed
	}
	s.watches.Put(w)
	if s.told {
		lost = s.trouble
	}
	return lost, nil
}

// hears reports whether changes are pushed.
func (s *Store) hears() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.told
}

// adopt makes a stretch the one that calls use, and notifies the watches of its first state.
func (s *Store) adopt(st *stretch) {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.now, s.latest = st, st.at
	s.troubled(nil) // the watches get the present state below
	s.changing()
	var all []news
	for _, key := range s.watches.Keys() {
		all = append(all, news{s.watches.Of(key), s.entry(st, key)})
	}
	s.mu.Unlock()
	tell(all)
}

// take is called with the fetched records.
func (s *Store) take(st *stretch, h haul) {
	s.mu.Lock()
	var all []news
	st.fill(h, func(p post, effective bool) {
		st.settle(p, effective)
		if to := s.watches.Of(p.key); effective && to != nil {
			all = append(all, news{to, driver.Entry{Value: p.value, Version: p.version(), Floor: s.raise(st, p.offset+1)}})
		}
	})
	st.wake()
	s.mu.Unlock()
	tell(all)
}

// wake ends the waits for offsets that the log has now reached.
func (st *stretch) wake() {
	st.waits = slices.DeleteFunc(st.waits, func(w wait) bool {
		if w.until > st.fold.next {
			return false
		}
		close(w.done)
		return true
	})
}

// lose ends the present stretch, if there is one, with all calls that wait for it.
func (s *Store) lose(why error) {
	s.mu.Lock()
	all := s.troubled(why)
	if st := s.now; st != nil {
		st.why = fmt.Errorf("the log must be read again: %w", why)
		s.now = nil
		close(st.lost)
	}
	s.changing()
	s.mu.Unlock()
	tell(all)
}

// note records the obstacle to reading, for callers that give up waiting for it; nil if there is
// none any more.
func (s *Store) note(trouble error) {
	s.mu.Lock()
	all := s.troubled(trouble)
	s.mu.Unlock()
	tell(all)
}

// tolerated is how long the log may not be read before the elections poll. Another broker usually
// leads sooner.
const tolerated = 2 * time.Second

// troubled records the obstacle to reading, and returns the calls that tell all watches when it has
// lasted, and when it is over. It is called under the lock, at each attempt.
func (s *Store) troubled(why error) (all []news) {
	var e driver.Entry
	s.trouble = why
	switch {
	case why == nil:
		told := s.told
		s.since, s.told = time.Time{}, false
		if !told {
			return nil
		}
		e.Unverified = true // makes them read
	case s.since.IsZero():
		s.since = time.Now()
		return nil
	case time.Since(s.since) < tolerated:
		return nil
	default:
		s.since, s.told = time.Now(), true
		e.Lost = fmt.Errorf("kafkalog: topic %s cannot be read: %w", s.wire.topic, why)
	}
	return []news{{s.watches.All(), e}}
}

// changing is called under the lock.
func (s *Store) changing() {
	close(s.changed)
	s.changed = make(chan struct{})
}
