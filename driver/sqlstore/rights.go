package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
)

// CheckRights returns an error that wraps driver.ErrDenied if the right to update the table is
// missing, and any other error if there was no answer or the server is read-only. It sends an
// update of no row. It does not check the right to insert: only the first member of an election
// needs that right, or a member that finds the row removed.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	if err := s.ready(ctx, key); err != nil {
		return fmt.Errorf("sqlstore: check the right to write %s: %w", s.place(key), err)
	}
	if _, err := on(ctx, s, func(ctx context.Context, c session) (sql.Result, error) {
		return c.exec(ctx, s.text.rights, key)
	}); err != nil {
		return fmt.Errorf("sqlstore: check the right to write %s: %w", s.place(key), s.explain(err))
	}
	return nil
}
