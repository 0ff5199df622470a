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

// Translator translates the records of elections for a bucket in which candidates of another
// program take part while they are replaced. It is a hook for the packages in compat, which know
// the formats of such programs and cannot be part of this package. Other programs have no use for
// it.
//
// It translates only values, and neither versions nor the conditions of writes. The ttl is the
// bucket's TTL. If an operator removed the TTL, it is the last one that the store saw. It is 0 if
// the store never saw a TTL. Except for Check and Inspect, methods are called only with a TTL that
// Check accepts. All are called from many goroutines and must return at once.
type Translator interface {
	// Check returns an error if a bucket with this TTL cannot be shared. Open returns that error,
	// and so does each later call.
	Check(ttl time.Duration) error
	// MaxLease returns the longest lease that a leader may hold in such a bucket.
	MaxLease(ttl time.Duration) time.Duration
	// Show returns the value of a cell as elections should see it. It is not called for an absent
	// cell.
	Show(ttl time.Duration, value []byte, version driver.Version) []byte
	// Write returns the bytes to store for a value of an election, and whether to mark them as
	// deleted: clients of a key-value bucket take a marked value for an absent key. Over a handle
	// the mark is ignored. The value replaces an absence if overAbsence is true. After an error
	// nothing is sent.
	Write(ttl time.Duration, value []byte, overAbsence bool) (stored []byte, deleted bool, err error)
	// Inspect returns the findings that replace the store's own about the bucket's TTL and about
	// markers of expired keys.
	Inspect(b SharedBucket, lease time.Duration) []driver.Finding
}

// SharedBucket is the input for a Translator's inspection.
type SharedBucket struct {
	Name string
	// TTL and MarkerTTL are the bucket's TTL and LimitMarkerTTL; 0: it has none.
	TTL, MarkerTTL time.Duration
	// Marks reports whether a value can be marked as deleted.
	Marks bool
}

// Translating sets the Translator for all values that are read, pushed and written. It is for the
// packages in compat.
func Translating(t Translator) Option { return func(o *opening) { o.translator = t } }

// translating are cells whose values are translated.
type translating struct {
	cells
	by  Translator
	ttl *ttl
	// markDeleted is CompareAndSwap with a mark; nil: marks are not possible.
	markDeleted func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error)
}

func (o opening) over(b *bucket) cells {
	if o.translator == nil {
		return b
	}
	return &translating{cells: b, by: o.translator, ttl: &b.ttl, markDeleted: b.markDeleted}
}

func (o opening) overHandle(h *handle) cells {
	if o.translator == nil {
		return h
	}
	return &translating{cells: h, by: o.translator, ttl: &h.ttl}
}

// Read returns the state of the cell as elections see it.
func (t *translating) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := t.cells.Read(ctx, key)
	if err != nil {
		return driver.Entry{}, err
	}
	ttl, err := t.known(ctx)
	if err != nil {
		return driver.Entry{}, err
	}
	return t.show(ttl, e), nil
}

// CompareAndSwap writes a value for both kinds of candidates.
func (t *translating) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	ttl, err := t.known(ctx)
	if err != nil {
		return "", err
	}
	prev, overAbsence := unmark(prev)
	value, deleted, err := t.by.Write(ttl, value, overAbsence)
	if err != nil {
		return "", err
	}
	if deleted && t.markDeleted != nil {
		return t.markDeleted(ctx, key, prev, value)
	}
	return t.cells.CompareAndSwap(ctx, key, prev, value)
}

// open uses the TTL at the time of each message: a read may have found another one.
func (t *translating) open(ctx context.Context, after uint64, deliver func(string, driver.Entry)) (*link, error) {
	if _, err := t.known(ctx); err != nil {
		return nil, err
	}
	return t.cells.open(ctx, after, func(key string, e driver.Entry) {
		if ttl, err := t.ttl.accepted(t.by); err == nil {
			deliver(key, t.show(ttl, e))
		}
	})
}

func (t *translating) show(ttl time.Duration, e driver.Entry) driver.Entry {
	if e.Absent() {
		e.Version = mark(e.Version)
	} else {
		e.Value = t.by.Show(ttl, e.Value, e.Version)
	}
	return e
}

func (t *translating) survey(ctx context.Context) (survey, error) {
	s, err := t.cells.survey(ctx)
	s.translator, s.marks = t.by, t.markDeleted != nil
	return s, err
}

// known returns the TTL, and asks for it if it is not known yet.
func (t *translating) known(ctx context.Context) (time.Duration, error) {
	ttl, err := t.ttl.accepted(t.by)
	if errors.Is(err, errNoInfo) {
		if _, err := t.cells.survey(ctx); err != nil {
			return 0, err
		}
		return t.ttl.accepted(t.by)
	}
	return ttl, err
}

// checkRights is that of the bucket; over a handle there is none.
func (t *translating) checkRights(ctx context.Context, key string) error {
	if b, ok := t.cells.(rightsChecker); ok {
		return b.checkRights(ctx, key)
	}
	return nil
}

// MaxLease returns the longest lease with which a candidate can lead: that of a Translator,
// otherwise 1 h. A store over a handle knows its bucket's TTL only after its first call, and
// returns 1 h until then.
func (s *Store) MaxLease() time.Duration {
	if t, ok := s.cells.(*translating); ok {
		if ttl, err := t.ttl.accepted(t.by); err == nil {
			return t.by.MaxLease(ttl)
		}
	}
	return driver.MaxLease
}

// ttl is the bucket's TTL, as its stream was last described. Candidates of another program may read
// it only once, when they start. So they go on with the old TTL after it was removed.
type ttl struct{ known atomic.Int64 } // 0: not yet known; negative: there is none

func (t *ttl) learn(i streamInfo) {
	switch age := i.Config.MaxAge; {
	case age > 0:
		t.known.Store(int64(age))
	default:
		t.known.CompareAndSwap(0, -1)
	}
}

// accepted returns the TTL, or an error if it is not known or the translator refuses it.
func (t *ttl) accepted(by Translator) (time.Duration, error) {
	d := time.Duration(t.known.Load())
	if d == 0 {
		return 0, fmt.Errorf("candidates of another program take part, which needs the bucket's TTL: %w; use Open", errNoInfo)
	}
	d = max(d, 0)
	return d, by.Check(d)
}

// suits refuses a bucket that cannot be shared.
func (o opening) suits(b *bucket) error {
	if o.translator == nil {
		return nil
	}
	_, err := b.ttl.accepted(o.translator)
	return err
}

// missing begins the version of a delete marker. A write over one depends on that.
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
