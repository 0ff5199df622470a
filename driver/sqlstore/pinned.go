package sqlstore

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"time"
)

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
	for _, statement := range []string{"BEGIN", "ROLLBACK"} {
		if _, err := f.conn.ExecContext(ctx, statement); err != nil {
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
