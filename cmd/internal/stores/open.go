package stores

import (
	"context"
	"math"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
)

// Store is an open store with a connection of its own.
type Store struct {
	// Driver is the store for elections. Its type says which optional interfaces it has, as with
	// any driver.
	Driver driver.Store

	place  Place
	opened *kind.Opened
}

// Open returns a store that is ready to be used. Its errors have hints. It calls the server only if
// it has to; Check always does.
func Open(ctx context.Context, p Place, o Options) (*Store, error) {
	opened, err := p.At.Open(ctx, o)
	if err != nil {
		return nil, p.blame(err)
	}
	return &Store{opened.Driver, p, opened}, nil
}

// Check reads an election's record, to find out early whether the store exists and permits that.
// Its errors have hints.
func (s *Store) Check(ctx context.Context, key string) error {
	if s.opened.LogIn != nil {
		if err := s.opened.LogIn(ctx); err != nil {
			return s.place.blame(err)
		}
	}
	if _, err := s.Driver.Read(ctx, key); err != nil {
		return s.place.Explain(err)
	}
	return nil
}

// Nominate takes part in the nomination for an election, if the place has one; otherwise it returns
// nil. Call it for candidates, not for observers. Its errors have hints.
func (s *Store) Nominate(ctx context.Context, election string) (*Nomination, error) {
	if s.opened.Nominate == nil {
		return nil, nil
	}
	n, err := s.opened.Nominate(ctx, election)
	if err != nil {
		return nil, s.place.blame(err)
	}
	return n, nil
}

// Inspect reports unsafe settings of the store for elections with leases up to the given one. Its
// errors have hints.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	found, err := driver.AbilitiesOf(s.Driver).Inspect(ctx, lease)
	if err != nil {
		return nil, s.place.Explain(err)
	}
	return found, nil
}

// Close ends the watches and the connection.
func (s *Store) Close() error { return s.opened.Close() }

// Forever is the limit for a program that can only wait for the store.
const Forever = time.Duration(math.MaxInt64)

// Patience is how long to wait for a store.
type Patience struct {
	// Limit is the time after which no further attempt begins; 0: only one attempt is made.
	Limit time.Duration
	// Told is called with each error before the next attempt; it may be nil.
	Told func(error)
}

// How long attempts may take, and the pauses between them. The first attempt is short, so that its
// error is reported soon. Each later one may take twice as long, since reading a long log may need
// it.
const (
	firstAttempt = 5 * time.Second
	lastAttempt  = time.Minute
	firstPause   = 100 * time.Millisecond
	lastPause    = time.Second
)

// Connect opens a store and reads an election's record, as Open and Check do. While the servers
// cannot be reached it tries again. It returns at once if waiting cannot help, such as for a
// missing bucket or a wrong password. Its errors have hints, except for the cause of ctx if that
// has ended.
func Connect(ctx context.Context, p Place, key string, o Options, w Patience) (*Store, error) {
	end := time.Now().Add(w.Limit)
	least := firstAttempt
	if o.Create {
		least += kind.CreateWithin
	}
	within := least
	for pause := firstPause; ; pause, within = min(2*pause, lastPause), min(2*within, lastAttempt) {
		s, err := attempt(ctx, p, key, o, min(within, max(least, time.Until(end))))
		if err == nil {
			return s, nil
		}
		left := time.Until(end)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !fault.Passes(err) || left <= 0:
			return nil, err
		case w.Told != nil:
			w.Told(err)
		}
		if !sleep(ctx, min(pause, left)) {
			return nil, context.Cause(ctx)
		}
	}
}

func attempt(ctx context.Context, p Place, key string, o Options, within time.Duration) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, err := Open(ctx, p, o)
	if err != nil {
		return nil, err
	}
	if err := s.Check(ctx, key); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// sleep returns false as soon as the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
