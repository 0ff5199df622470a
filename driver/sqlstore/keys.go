package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// Keys returns the sorted keys of all rows, by one statement. It leaves out names that CheckKey
// refuses. It needs the same right as Read. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := on(ctx, s, func(ctx context.Context, c session) ([]string, error) { return s.keys(ctx, c.conn) })
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list the keys in table %s: %w", s.table, s.explain(err))
	}
	slices.Sort(all)
	return all, nil
}

func (s *Store) keys(ctx context.Context, conn *sql.Conn) (all []string, err error) {
	rows, err := conn.QueryContext(ctx, s.text.keys)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		if s.CheckKey(key) == nil {
			all = append(all, key)
		}
	}
	return all, rows.Err()
}
