package natskv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrTwoClusters says that the connection has come to another bucket of the same name: one that was there already while the
// known one was in use, so it did not follow it. The servers in the URL belong to two clusters, or an older bucket was put
// back. Nothing is read or written there, since somebody may lead by the other one.
var ErrTwoClusters = errors.New("there are two buckets of this name")

// skew is how far the clocks of two servers of one cluster may be apart.
const skew = time.Minute

// met is which stream the store has met. Names tell nothing, since any two clusters may have the same ones; but no two
// streams are made at the same nanosecond.
type met struct {
	mu      sync.Mutex
	created time.Time // when the stream was made; zero: none was met yet
	seen    time.Time // when it was last there, by the clock of its server
	at      time.Time // the same by the clock of this machine
	over    uint64    // the connection over which, by the number of reconnects

	looking sync.Mutex // held by whoever looks where a new connection leads
}

// greet refuses a stream that was there already while another one was in use under its name. One that was made later took
// the place of the other, and is for those who know what was lost with that.
func (b *bucket) greet(info streamInfo, over uint64) error {
	err := b.met.greet(info, over)
	if err != nil {
		b.keep.astray()
	}
	return err
}

func (m *met) greet(info streamInfo, over uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case info.Created.IsZero():
		return nil // an old server
	case !m.created.IsZero() && !info.Created.Equal(m.created) && info.Created.Before(m.seen.Add(-skew)):
		return fmt.Errorf("%w: the stream here was made on %s, and another one, made on %s, was in use until %s: "+
			"connect to the servers of one cluster only; if this is the right bucket, restart this process",
			ErrTwoClusters, stamp(info.Created), stamp(m.created), stamp(m.seen))
	case !info.Created.Equal(m.created):
		m.created, m.seen = info.Created, info.Now
	case info.Now.After(m.seen):
		m.seen = earlier(info.Now, m.seen.Add(time.Since(m.at)+skew)) // a server whose clock is ahead is not believed for ever
	}
	m.over, m.at = over, time.Now()
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// again is what was met over this very connection, for when a cluster whose leader is gone does not describe the stream: it
// cannot make a bucket anew either. Otherwise it returns the error.
func (m *met) again(over uint64, err error) (streamInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.created.IsZero() || m.over != over {
		return streamInfo{}, err
	}
	return streamInfo{Created: m.created}, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// knows reports whether the present connection is known to lead to the stream.
func (m *met) knows(reconnects uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over == reconnects
}

// sure makes certain before a write that a new connection leads to the same stream as the old one did. A sequence of
// another one could be the expected one by chance.
func (b *bucket) sure(ctx context.Context) error {
	if b.met.knows(b.nc.Stats().Reconnects) {
		return nil
	}
	b.met.looking.Lock() // for as long as a request may take; the other writes would ask the same
	defer b.met.looking.Unlock()
	if b.met.knows(b.nc.Stats().Reconnects) {
		return nil
	}
	was := b.met.life()
	info, err := b.info(ctx)
	if err == nil && was != 0 && info.life() != was {
		err = errors.New("the bucket was made anew, so that what the write expects may be another's")
	}
	return err
}

// life is that of the stream that was met, 0 if none was.
func (m *met) life() life {
	m.mu.Lock()
	defer m.mu.Unlock()
	return streamInfo{Created: m.created}.life()
}
