package natskv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Migrating lets candidates of nats-kv-leader-elect take part in the same elections, on the same keys, while they are replaced
// one by one, and no longer. Every candidate of Tenure's must have it from before the first until after the last of them
// runs. docs/nats.md has the procedure, and what is promised meanwhile.
//
// Their rules are: Create the key when it is absent or deleted, Update it with its last sequence each three quarters of the
// bucket's TTL while leading, stop leading when an Update fails; the value is the candidate's name. So for this store
//
//   - a value that is a name, which is text and no JSON (a number will do), is a leader that is to be waited out for the TTL.
//     Each of its writes is a new state. It has the term 0, cannot be asked to hand over, and is never renewed. JSON of
//     somebody else's stays somebody else's: nothing overwrites it, and nobody leads;
//   - a released record is marked as deleted, which ends their waiting too. It stays what it is for candidates of Tenure's;
//   - nobody leads before a key that was deleted, purged or expired has been vacant for seven eighths of the TTL, because one
//     of them may lead there for three quarters and not know. A vacant record is not marked, so that they stay away;
//   - a lease longer than a third of the TTL is refused when a leader's record is to be written, since they take over
//     what expires; see Store.MaxLease.
//
// The bucket must have a TTL, of 1.5 s to 1 h, as nats-kv-leader-elect needs one too. Open returns ErrUnshareable otherwise; over a
// handle the first call does. It must not be changed while both kinds run.
//
// Over a handle (FromKeyValue, FromLegacyKeyValue) nothing can be marked, because no handle publishes headers. A release then
// serves candidates of Tenure's alone; the others wait for the released record to expire, as they always waited for one another's.
func Migrating() Option { return func(o *opening) { o.migrating = true } }

// ErrUnshareable says that Migrating makes no sense in this bucket, and why.
var ErrUnshareable = errors.New("the bucket cannot be shared with candidates of nats-kv-leader-elect")

const (
	// leasesInTTL: a record must outlive its lease also when renewals fail, and when the server's clock, by which records
	// expire, is set.
	leasesInTTL = 3
	// longestTTL is the longest lease there is, which a leader of the old kind is given.
	longestTTL = time.Hour
)

// migrating translates between what is in the bucket and what elections see of it.
type migrating struct {
	cells
	ttl *ttl
	// release writes a record that old candidates take for a deleted key; nil: there is no way to.
	release func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error)
}

func (o opening) over(b *bucket) cells {
	if !o.migrating {
		return b
	}
	return &migrating{cells: b, ttl: &b.ttl, release: b.markDeleted}
}

func (o opening) overHandle(h *handle) cells {
	if !o.migrating {
		return h
	}
	return &migrating{cells: h, ttl: &h.ttl}
}

// Read returns the state of the cell as elections see it.
func (m *migrating) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := m.cells.Read(ctx, key)
	if err != nil {
		return driver.Entry{}, err
	}
	f, err := m.format(ctx)
	if err != nil {
		return driver.Entry{}, err
	}
	return f.show(e), nil
}

// CompareAndSwap writes what is for both kinds.
func (m *migrating) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	f, err := m.format(ctx)
	if err != nil {
		return "", err
	}
	prev, missing := unmark(prev)
	value, released, err := f.write(value, missing)
	if err != nil {
		return "", err
	}
	if released && m.release != nil {
		return m.release(ctx, key, prev, value)
	}
	return m.cells.CompareAndSwap(ctx, key, prev, value)
}

// open goes by the TTL of the time of each message: reading may have found another one.
func (m *migrating) open(ctx context.Context, after uint64, deliver func(string, driver.Entry)) (*link, error) {
	if _, err := m.format(ctx); err != nil {
		return nil, err
	}
	return m.cells.open(ctx, after, func(key string, e driver.Entry) {
		if f, err := m.ttl.format(); err == nil {
			deliver(key, f.show(e))
		}
	})
}

func (m *migrating) survey(ctx context.Context) (survey, error) {
	s, err := m.cells.survey(ctx)
	s.migrating, s.mute = true, m.release == nil
	return s, err
}

// format asks for the TTL unless it is known.
func (m *migrating) format(ctx context.Context) (format, error) {
	f, err := m.ttl.format()
	if errors.Is(err, errNoInfo) {
		if _, err := m.cells.survey(ctx); err != nil {
			return format{}, err
		}
		return m.ttl.format()
	}
	return f, err
}

// MaxLease is the longest lease with which a candidate can lead: with Migrating a third of the bucket's TTL, otherwise 1 h,
// which is the longest there is. A store over a handle knows the TTL after its first call.
func (s *Store) MaxLease() time.Duration {
	if m, ok := s.cells.(*migrating); ok {
		if f, err := m.ttl.format(); err == nil {
			return f.maxLease()
		}
	}
	return longestTTL
}

// ttl is the bucket's, as its stream was last described. Old candidates read it once, when they start, so that they go on
// with what it was when somebody has taken it away.
type ttl struct{ known atomic.Int64 } // 0: not yet known; negative: there is none

func (t *ttl) learn(i streamInfo) {
	switch age := i.Config.MaxAge; {
	case age > 0:
		t.known.Store(int64(age))
	default:
		t.known.CompareAndSwap(0, -1)
	}
}

func (t *ttl) format() (format, error) {
	switch d := time.Duration(t.known.Load()); {
	case d == 0:
		return format{}, fmt.Errorf("Migrating needs the bucket's TTL: %w; use Open", errNoInfo)
	case d < 0:
		return format{}, fmt.Errorf("%w: it has no TTL, which they need: leave out Migrating, or look whether this is their bucket",
			ErrUnshareable)
	case d < leasesInTTL*minLease || d > longestTTL:
		return format{}, fmt.Errorf("%w: its TTL is %v; it must be from %v, so that a lease fits in three times, to %v, which is as long "+
			"as any lease", ErrUnshareable, d, leasesInTTL*minLease, longestTTL)
	default:
		return format{ttl: d}, nil
	}
}

// suits refuses a bucket that cannot be shared.
func (o opening) suits(b *bucket) error {
	if !o.migrating {
		return nil
	}
	_, err := b.ttl.format()
	return err
}

// missing begins the version of a delete marker. What a leader puts over one is judged by that.
const missing = "missing "

func mark(v driver.Version) driver.Version {
	if v == "" || isUnwritten(v) {
		return v
	}
	return missing + v
}

// unmark returns the version as the bucket has it, and whether it is that of an absence.
func unmark(v driver.Version) (driver.Version, bool) {
	bare, marked := strings.CutPrefix(string(v), missing)
	return driver.Version(bare), marked || v == "" || isUnwritten(v)
}

// checkRights is that of the bucket; over a handle there is none.
func (m *migrating) checkRights(ctx context.Context, key string) error {
	if b, ok := m.cells.(rightful); ok {
		return b.checkRights(ctx, key)
	}
	return nil
}
