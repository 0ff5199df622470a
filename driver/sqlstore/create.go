package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

// CreateStatement returns the statement that makes the table, for migrations.
func (s *Store) CreateStatement() string { return s.text.create }

// Create makes the table if there is none. For that it needs the right to create tables in the
// schema, which a candidate does not need otherwise. Several processes may call it at once.
//
// It returns an error that wraps driver.ErrDenied if there is no table and rights are missing, and
// any other error if it is not known whether the table exists.
func (s *Store) Create(ctx context.Context) error {
	// PostgreSQL looks in the first schema of the search path alone before it makes a table, but
	// uses one in any of them.
	if _, unreadable := s.read(ctx, "tenure"); unreadable == nil {
		return nil
	}
	_, err := on(ctx, s, func(ctx context.Context, c session) (sql.Result, error) {
		return c.exec(ctx, s.text.create)
	})
	if err == nil {
		return nil
	}
	// The table may be there: another process may have made it at the same moment, or without the
	// right to create one this statement fails in any case.
	if _, unreadable := s.read(ctx, "tenure"); unreadable == nil {
		return nil
	}
	if s.dialect.means(s.code(err), err.Error()) == denied {
		return fmt.Errorf("sqlstore: create table %s: %w: let this user create tables there, or another user run this "+
			"statement:\n%s;\n%w", s.table, driver.ErrDenied, s.text.create, err)
	}
	return fmt.Errorf("sqlstore: create table %s: %w", s.table, s.explain(err))
}
