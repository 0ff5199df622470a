package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

const (
	// A feed asks soon after a sign of a write, and then less and less often: the first bytes of a
	// write show before its commit, which may wait for the disk. When the commit shows, another one
	// may have begun, but rarely has. The pauses grow by these factors, until the feed is at rest.
	soon       = 2 * time.Millisecond
	rest       = 2 * time.Second
	growth     = 2
	growthSeen = 16
	// usualInterval is the time between questions where the system gives no signs.
	usualInterval = 10 * time.Millisecond
	// A feed waits this many times as long as it looked. It bounds the cost in a busy file.
	perLook = 20

	// lostAfter is how long a feed may fail until elections poll.
	lostAfter = 2 * time.Second
	// blockedFor bounds the wait for a lock of the file, in milliseconds.
	blockedFor = 200
	// few keys are read one by one; of more, those that changed are found by one scan.
	few = 100
)

var (
	errNoFile    = errors.New("the database is in memory, where each connection may have another one")
	errSmallPool = errors.New("the pool may have fewer than three connections, and one more is needed to look for changes; " +
		"raise the limit of SetMaxOpenConns, or poll with sqlstore.New(db, sqlstore.SQLite())")
	errNoPath = errors.New("the file was renamed or removed")
)

// feed looks for changes. It is one goroutine.
type feed struct {
	hub   *hub
	store *Store

	// conn is for this feed alone, and never writes: data_version ignores the commits of its own
	// connection.
	conn *sql.Conn
	// signs come when the file may have been written to; nil: there are none.
	signs *signs
	// at is the path to look at, and identity that of the file there.
	at, identity string
	era          string // of the connection's file
	asked        int64  // the last answer about the version of the data; negative: none

	known   map[string]driver.Version // what was pushed last, by key
	fresh   []*watches.Watch          // have not been told anything
	failing time.Time                 // the first failure in a row; zero: none
	lost    bool                      // the elections poll
}

func newFeed(h *hub) *feed {
	return &feed{hub: h, store: h.store, known: map[string]driver.Version{}}
}

// run looks again and again until the context ends or the pool is closed.
func (f *feed) run(ctx context.Context, woken <-chan struct{}) {
	defer f.release()
	for pause, by := soon, growth; ; {
		began, asked := time.Now(), f.asked
		f.tell(ctx, f.look(ctx))
		if f.asked != asked {
			by = growthSeen
		}
		if ctx.Err() != nil || f.closed() {
			return
		}
		least := min(perLook*time.Since(began), rest)
		if !f.await(ctx, woken, max(f.interval(pause), least)) {
			pause = min(time.Duration(by)*pause, rest)
			continue
		}
		pause, by = soon, growth
		pauseFor(ctx, max(soon, least-time.Since(began)))
	}
}

// interval returns the time to the next look if there is no sign.
func (f *feed) interval(pause time.Duration) time.Duration {
	if f.conn == nil || f.signs != nil {
		return pause
	}
	return cmp.Or(f.hub.every, usualInterval)
}

// await waits for a time, and reports whether a sign or a new watch ended the wait.
func (f *feed) await(ctx context.Context, woken <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-f.signs.seen():
		return true
	case <-woken:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// closed reports whether the pool is closed, so that the connection of the feed must end too.
func (f *feed) closed() bool {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := f.store.db.Conn(ended)
	return !errors.Is(err, context.Canceled)
}

// look pushes what has changed. After an error, unless the file is locked, the next look opens
// another connection.
func (f *feed) look(ctx context.Context) error {
	if f.conn != nil && f.replaced() {
		f.release()
	}
	err := errSmallPool
	if f.mayHold() {
		err = f.open(ctx)
	}
	if err == nil {
		f.signs.follow()
		err = f.read(ctx)
	}
	if err == nil {
		return nil
	}
	if f.asked = -1; f.store.code(err) != busy { // the next look reads all keys
		f.release()
	}
	return f.store.explain(err)
}

// busy is SQLite's code for a file that another connection has locked.
const busy = "5"

// replaced reports whether another file is at the path, or none.
func (f *feed) replaced() bool {
	now, _ := identity(f.at)
	return now != f.identity
}

// read asks whether the data has changed, and reads the keys that have changed or are new.
func (f *feed) read(ctx context.Context) error {
	var now int64
	// Queries are short, and database/sql starts a goroutine for each one that can be canceled.
	if err := f.conn.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA data_version").Scan(&now); err != nil {
		return err
	}
	f.fresh = append(f.fresh, f.hub.takeFresh(ctx)...)
	var keys []string
	for _, w := range f.fresh {
		delete(f.known, w.Key())
		keys = append(keys, w.Key())
	}
	if now != f.asked {
		keys = f.hub.keys()
		f.forget(keys)
	}
	if err := f.readKeys(ctx, keys); err != nil {
		return err
	}
	f.asked, f.fresh = now, nil
	return nil
}

// forget drops keys that are watched no longer, when there are many.
func (f *feed) forget(watched []string) {
	if len(f.known) <= 2*len(watched)+few {
		return
	}
	former := f.known
	f.known = make(map[string]driver.Version, len(watched))
	for _, key := range watched {
		if v, ok := former[key]; ok {
			f.known[key] = v
		}
	}
}

// readKeys reads keys, and pushes those whose version is not the known one.
func (f *feed) readKeys(ctx context.Context, keys []string) error {
	c := session{conn: f.conn, file: f.era, ended: ctx.Err}
	if len(keys) > few {
		var err error
		if keys, err = f.changed(ctx, keys); err != nil {
			return err
		}
	}
	for _, key := range keys {
		r, err := f.store.row(context.WithoutCancel(ctx), c, key)
		if err != nil {
			return err
		}
		e := r.entry(key)
		if v, ok := f.known[key]; ok && v == e.Version {
			continue
		}
		f.known[key] = e.Version
		f.hub.deliver(ctx, key, e)
	}
	return nil
}

// changed returns the keys whose row may have another version than the known one.
func (f *feed) changed(ctx context.Context, keys []string) (all []string, err error) {
	rows, err := f.conn.QueryContext(context.WithoutCancel(ctx), f.store.text.versions)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	stamps := make(map[string]string, len(keys))
	for rows.Next() {
		var key, stamp string
		if err := rows.Scan(&key, &stamp); err != nil {
			return nil, err
		}
		stamps[key] = stamp
	}
	for _, key := range keys {
		if known, ok := f.known[key]; !ok || parseVersion(known).stamp != stamps[key] {
			all = append(all, key)
		}
	}
	return all, rows.Err()
}

// tell makes the elections poll if looking has failed for a while, and pushes all states when it
// works again.
func (f *feed) tell(ctx context.Context, err error) {
	switch {
	case err == nil:
		f.failing, f.lost = time.Time{}, false
		return
	case f.failing.IsZero():
		f.failing = time.Now()
	}
	silence := driver.Entry{Lost: fmt.Errorf("sqlstore: changes in table %s are not pushed: %w", f.store.table, err)}
	if !f.lost && time.Since(f.failing) < lostAfter {
		return
	}
	f.fresh = append(f.fresh, f.hub.takeFresh(ctx)...)
	untold := f.fresh
	if f.fresh = nil; f.lost {
		watches.Push(untold, silence)
		return
	}
	f.lost = true
	clear(f.known)
	for _, key := range f.hub.keys() {
		f.hub.deliver(ctx, key, silence)
	}
}
