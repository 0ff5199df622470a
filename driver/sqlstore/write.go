package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/tenure-go/tenure/driver"
)

// insert reads the row first: the answer to an INSERT does not tell the era in every database.
func (s *Store) insert(ctx context.Context, c session, key string, value []byte) (version, error) {
	r, err := s.row(ctx, c, key)
	if err := cmp.Or(err, c.ended()); err != nil {
		return version{}, err
	}
	next := version{newStamp(key, value), r.era}
	return next, s.write(ctx, c, key, value, next, s.text.insert, key, value, next.stamp, next.era)
}

// insertFirst writes only if nothing was ever written to the table.
func (s *Store) insertFirst(ctx context.Context, c session, key, era string, value []byte) (version, error) {
	next := version{newStamp(key, value), era}
	return next, s.write(ctx, c, key, value, next, s.text.first, key, value, next.stamp, next.era)
}

// untouched reports whether the database proves that nothing was ever written to the table.
func (s *Store) untouched(ctx context.Context, c session) (proven bool, err error) {
	err = c.queryRow(ctx, s.text.untouched).Scan(&proven)
	if err != nil && s.dialect.means(s.code(err), err.Error()) == noTable {
		return false, nil // an older version made the table, without the sequence
	}
	return proven, err
}

func (s *Store) update(ctx context.Context, c session, key string, was version, value []byte) (version, error) {
	next := version{newStamp(key, value), was.era}
	return next, s.write(ctx, c, key, value, next, s.text.update, value, next.stamp, key, was.stamp, was.era)
}

// write runs one statement and reads the row back on the same connection. A session in which a
// transaction was left open acknowledges a write that is not committed, and a trigger, a rule or a
// view may acknowledge one that changes nothing. write returns driver.ErrConflict if the statement
// writes no row, and an unconfirmedError if the row is not as written.
func (s *Store) write(ctx context.Context, c session, key string, value []byte, next version, query string, args ...any) error {
	return c.commit(ctx, s.dialect.transaction, func(c session) error {
		result, err := c.exec(ctx, query, args...)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return cmp.Or(err, driver.ErrConflict)
		}
		if err := s.readBack(ctx, c, key, value, next); err != nil {
			return &unconfirmedError{err}
		}
		return nil
	})
}

var errChanged = errors.New("the row is not as it was written a moment ago: another member wrote in between, " +
	"or a trigger, a rule or a view of the database changes writes to this table (tenure run --inspect names it)")

func (s *Store) readBack(ctx context.Context, c session, key string, value []byte, next version) error {
	r, err := s.row(ctx, c, key)
	if err != nil {
		return err
	}
	if r.version.String != next.stamp || r.wroteIn.String != next.era || !bytes.Equal(r.value, value) {
		return errChanged
	}
	return nil
}

// known returns an error if the database names no era.
func (s *Store) known(now sql.NullString) error {
	if now.Valid {
		return nil
	}
	return errors.New("the database does not name its era (or WithEra gives null), which it refuses to a session that is not fit " +
		"for elections: " + s.dialect.unfit)
}
