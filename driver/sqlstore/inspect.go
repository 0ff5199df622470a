package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Inspect checks the settings of the server and of the table that elections rely on. It only reads,
// on at most two connections at once. It skips settings that this user may not read.
//
// Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	if _, err := s.Read(ctx, "tenure-inspection"); err != nil {
		return nil, err
	}
	found, err := on(ctx, s, func(ctx context.Context, c session) ([]driver.Finding, error) {
		i := &inspection{ctx: ctx, s: s, conn: c.conn, lease: lease}
		s.dialect.inspect(i)
		return i.found, context.Cause(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: inspect table %s: %w", s.table, err)
	}
	return found, nil
}

// inspection collects findings.
type inspection struct {
	ctx   context.Context
	s     *Store
	conn  *sql.Conn
	lease time.Duration
	found []driver.Finding
}

func (i *inspection) find(severity driver.Severity, setting, problem, remedy string) {
	i.found = append(i.found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
}

// triggers reports the names of triggers or rules on the table.
func (i *inspection) triggers(kind, names string, any bool) {
	if any && names != "" {
		i.find(driver.Warning, kind, "code of the database runs at each write to this table ("+names+"): a write that it changes or "+
			"undoes is not confirmed, so no candidate may ever lead", "drop it, or make sure that it changes no row of the table")
	}
}

// ask returns the only value that a query selects, as text, and false if it selects none, null, or
// is refused.
func (i *inspection) ask(query string, args ...any) (string, bool) {
	var answer sql.NullString
	err := i.conn.QueryRowContext(i.ctx, query, args...).Scan(&answer)
	return answer.String, err == nil && answer.Valid
}
