package peer

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

var (
	errClosed = errors.New("peer: the store is closed")
	errNoPeer = errors.New("peer: the leader has no address for this member")
)

// Store is a store whose members receive the leader's writes from the leader. It must be made by
// New. It implements driver.Store, driver.Watcher, driver.PeerPushed and driver.Identifier. As a
// driver.Wrapper it has all other abilities of the inner store as well. Its methods may be called
// from many goroutines.
type Store struct {
	inner driver.Store
	cfg   Config
	keys  *identities
	books *ledger      // its own terms
	hub   *hub         // followed leaders
	gate  *requestGate // its followers
	certs *certificates
}

// New returns a store that passes all calls on to the given one, the inner store, and lets its
// elections follow their leaders directly. It starts nothing: mount Handler or call Serve, and call
// Close at the end. Its error lists all problems: those of Config, a nil store, and a store that is
// a driver.Watcher already. If there are none, it may be the error of Config.TLS.
func New(store driver.Store, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(store); err != nil {
		return nil, err
	}
	certs, err := newCertificates(&cfg)
	if err != nil {
		return nil, err
	}
	keys := newIdentities()
	s := &Store{inner: store, cfg: cfg, keys: keys, books: newLedger(cfg.Clock, cfg.Margin, keys.isOwn), certs: certs}
	s.hub = newHub(newDialler(cfg, certs), cfg)
	s.gate = newRequestGate()
	return s, nil
}

// Read reads the inner store. The result shows which leader to follow, and whether this process
// still leads.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	mark := s.books.mark(key)
	e, err := s.inner.Read(ctx, key)
	if err != nil {
		return e, err
	}
	c := decode(e)
	news, current := s.books.observe(key, mark, c)
	if news != nil {
		s.publish(key, news)
	}
	if current {
		t := s.targetOf(c)
		s.hub.setTarget(key, t)
		if t == (target{}) && c.valid && c.record.Held() && !s.keys.isOwn(c.record.Incarnation) {
			s.hub.notify(key, driver.Entry{Lost: errNoPeer})
		}
	}
	return e, nil
}

// CompareAndSwap calls the inner store. A confirmed write of a leader in this process is sent to
// its followers, without waiting for any of them.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	a := s.books.begin(key, prev, value)
	v, err := s.inner.CompareAndSwap(ctx, key, prev, value)
	if a == nil {
		return v, err
	}
	if news := s.books.finish(key, a, v, err); news != nil {
		s.publish(key, news)
	}
	return v, err
}

// publish calls the watches in this process. Streams see the change in the ledger. It also ends the
// follower of the key: a process does not dial itself, and after a release there is no leader to
// dial.
func (s *Store) publish(key string, news *leaderWrite) {
	s.hub.setTarget(key, target{})
	s.hub.notify(key, news.entry())
}

// Abilities returns those of the inner store, and those that this one adds.
func (s *Store) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(s.inner)
	a.Watcher, a.PeerPushed, a.Identifier = s, true, s
	return a
}

// PeerPushed marks that pushes may not reach every member: some cannot reach the leader, or do not
// use this package.
func (s *Store) PeerPushed() {}

// Incarnation returns a new public key as 43 bytes of base64url. The private key stays in this
// Store, for as long as the Store lives. It proves to followers that they talk to the process that
// the record in the store names.
func (s *Store) Incarnation() string { return s.keys.issue() }

// Watch calls see for the leader's writes. The leader pushes them over the network; if it is in
// this process, its CompareAndSwap calls see. An empty Entry means that a stream broke. Reads
// through this Store show the leader, so nothing is pushed before the first read. One connection
// serves all watches of a key. The errors are those of CheckKey, the context's if it has ended, and
// one after Close.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := errors.Join(ctx.Err(), driver.AbilitiesOf(s.inner).CheckKey(key)); err != nil {
		return nil, err
	}
	return s.hub.watch(key, see)
}

// Close ends all streams and connections, and the servers that Serve runs, and waits for them; for
// streams it waits at most Config.Timeout. Call it after the elections have ended: it still sends
// their last releases. Afterwards reads and writes still work, and watches do not. Close may be
// called more than once, but not from see or OnError. It returns nil.
func (s *Store) Close() error {
	s.gate.close(s.cfg.Timeout)
	s.hub.close()
	return nil
}

// cell is an entry with its record, if there is a valid one.
type cell struct {
	driver.Entry
	record record.Record
	valid  bool
}

func decode(e driver.Entry) cell {
	r, err := record.Decode(e.Value)
	return cell{Entry: e, record: r, valid: err == nil}
}

// targetOf returns the leader to follow: a holder in another process with an address and a public
// key.
func (s *Store) targetOf(c cell) target {
	r := &c.record
	if _, provable := publicKey(r.Incarnation); !c.valid || !r.Held() || !provable || s.keys.isOwn(r.Incarnation) {
		return target{}
	}
	if r.LeaderAddr == "" || s.cfg.ServeOnly {
		return target{}
	}
	return target{address: r.LeaderAddr, incarnation: r.Incarnation, term: r.Term}
}
