package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// SQLiteStore is the elections in one table of a file of SQLite, with pushes: the next leader
// starts as soon as the old one has released, or when its lease has expired. It must be made by
// NewSQLite. Its methods may be called from many goroutines.
//
// One goroutine serves all watches of a store. It holds one connection of the pool, without a
// transaction, and asks on it whether the file has changed (PRAGMA data_version). On Linux the
// kernel reports writes to the file (inotify): then it asks within milliseconds, and otherwise
// every 2 s. Elsewhere it asks every 10 ms. It also notices when the file is replaced, renamed or
// removed. Looking takes at most a twentieth of the time, so in a file with thousands of elections
// that change all the time, pushes come later.
//
// The goroutine needs a pool without a limit, or with at least three connections: in a smaller one
// it would take the connection from the writes. There elections poll, and say so
// ([driver.Entry.Lost]). They also poll while the file cannot be used.
type SQLiteStore struct {
	*Store
	hub *hub
}

// NewSQLite returns the elections in a table of a file of SQLite, and pushes changes. See [New] for
// the pool, the table and the errors. Use New(db, SQLite()) for a store that does not push.
//
// In a bubble of testing/synctest, use [WithInterval]: a wait for events of the file system stops
// the bubble's clock.
func NewSQLite(db *sql.DB, opts ...Option) (*SQLiteStore, error) {
	s, err := New(db, SQLite(), opts...)
	if err != nil {
		return nil, err
	}
	set := settings{}
	for _, opt := range opts {
		opt(&set)
	}
	return &SQLiteStore{s, &hub{store: s, every: set.every}}, nil
}

// WithInterval makes the store of [NewSQLite] ask for changes at this interval, and not when the
// system reports a write to the file. Use it in bubbles of testing/synctest, and on a file system
// that does not report writes. Each question costs the process one wake-up. Other stores ignore it.
func WithInterval(every time.Duration) Option {
	return func(set *settings) { set.every = every }
}

// Watch calls see for the present state of the cell and for its changes, until stop is called. It
// makes no call of the database itself. Its error is that of CheckKey.
func (s *SQLiteStore) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if err := s.ready(ctx, key); err != nil {
		return nil, fmt.Errorf("sqlstore: watch %s: %w", s.place(key), err)
	}
	return s.hub.watch(key, see), nil
}

var _ driver.Watcher = (*SQLiteStore)(nil)

// hub gives the changes that one feed finds to the watches of each key.
type hub struct {
	store *Store
	every time.Duration // see WithInterval

	mu      sync.Mutex
	halt    context.CancelFunc // ends the feed that is running; nil: none is
	woken   chan struct{}      // tells that feed of new watches
	watches watches.Set
	fresh   []*watches.Watch // have not been told anything
}

// watch starts a feed with the first watch.
func (h *hub) watch(key string, see func(driver.Entry)) (stop func()) {
	w := watches.New(key, see)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches.Put(w)
	h.fresh = append(h.fresh, w)
	if h.halt == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.halt, h.woken = cancel, make(chan struct{}, 1)
		f := &feed{hub: h, store: h.store, known: map[string]driver.Version{}}
		go f.run(ctx, h.woken)
	}
	select {
	case h.woken <- struct{}{}:
	default:
	}
	return func() {
		if w.Stop() {
			h.remove(w)
		}
	}
}

// remove ends the feed with the last watch.
func (h *hub) remove(w *watches.Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches.Remove(w); h.watches.Empty() && h.halt != nil {
		h.halt()
		h.halt, h.fresh = nil, nil
	}
}

// takeFresh returns the watches that have not been told anything, once. The context is that of the
// feed: another one may be running.
func (h *hub) takeFresh(ctx context.Context) []*watches.Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	fresh := h.fresh
	h.fresh = nil
	return fresh
}

// keys returns all keys that are watched.
func (h *hub) keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches.Keys()
}

// deliver calls the watches of a key without the lock, so that they may use the store.
func (h *hub) deliver(ctx context.Context, key string, e driver.Entry) {
	h.mu.Lock()
	all := h.watches.Of(key)
	h.mu.Unlock()
	if ctx.Err() == nil {
		watches.Push(all, e)
	}
}

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

// open takes a connection of the pool for the feed, unless it has one, and asks for signs of writes
// to its file.
func (f *feed) open(ctx context.Context) error {
	if f.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lostAfter)
	defer cancel()
	if f.at != "" {
		if _, err := os.Stat(f.at); err != nil { // opening it may make an empty file
			return fmt.Errorf("%w: %w", errNoPath, err)
		}
	}
	at := progress{began: time.Now()}
	conn, err := f.store.pool.take(ctx, f.store.db, &at)
	if err != nil {
		return at.explain(ctx, err)
	}
	f.conn, f.asked = conn, -1
	err = f.prepare(ctx)
	if err != nil && f.conn != nil { // nothing may be read over a connection that is not ready
		f.release()
	}
	return err
}

// mayHold reports whether the pool has enough connections.
func (f *feed) mayHold() bool {
	most := f.store.db.Stats().MaxOpenConnections
	return most == 0 || most > 2
}

// prepare finds out which file the connection has open. A connection that cannot be used goes back
// as it was: other code of the program may need its transaction, or its database in memory.
func (f *feed) prepare(ctx context.Context) error {
	file, err := f.examine(ctx)
	if err != nil {
		f.store.pool.give(f.conn)
		f.conn = nil
		return err
	}
	f.at, f.identity = cmp.Or(f.store.files.given, file.path), file.identity
	settings := fmt.Sprintf("PRAGMA busy_timeout = %d; PRAGMA data_version", blockedFor)
	if _, err := f.conn.ExecContext(ctx, settings); err != nil { // the question opens the log
		return err
	}
	if f.hub.every == 0 {
		f.signs = newSigns(file.path)
	}
	era, err := f.store.files.identify(ctx, f.conn)
	if era != f.era {
		clear(f.known)
	}
	f.era = era
	return err
}

// examine returns the file of the connection. A transaction that other code of the program left
// open would hide all changes, and is an error.
func (f *feed) examine(ctx context.Context) (file openFile, err error) {
	// One without the other would leave a transaction open. They wait for nothing, so they need no
	// end.
	whole := context.WithoutCancel(ctx)
	for _, statement := range []string{"BEGIN", "ROLLBACK"} {
		if _, err := f.conn.ExecContext(whole, statement); err != nil {
			return openFile{}, err
		}
	}
	file, err = opened(ctx, f.conn)
	if err == nil && file.path == "" {
		err = errNoFile
	}
	return file, err
}

// release closes the connection. The pool does not get it back, because its settings are changed.
func (f *feed) release() {
	f.signs.close()
	f.signs = nil
	if f.conn != nil {
		_ = f.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		f.store.pool.give(f.conn)
		f.conn = nil
	}
}
