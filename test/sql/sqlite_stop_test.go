package sql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// TestWatchThatStopsLeavesNoTransaction: a watch that is stopped just when its feed has sent BEGIN
// gives a connection back to the pool on which no transaction is open. Otherwise the candidate of
// that pool could write nothing more.
func TestWatchThatStopsLeavesNoTransaction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "elections.db")
	pool := poolOfSQLite(t, file)
	open(t, pool, sqlstore.SQLite())
	synctest.Test(t, func(t *testing.T) {
		stopped := &stopping{driver: pool.Driver(), file: file, begun: make(chan struct{}), resume: make(chan struct{})}
		db := sql.OpenDB(stopped)
		defer db.Close()
		s, err := sqlstore.NewSQLite(db, inBubble)
		must(t, err)
		stop, err := s.Watch(t.Context(), "k", func(driver.Entry) {})
		must(t, err)
		<-stopped.begun
		stop()
		close(stopped.resume)
		synctest.Wait()
		for range 3 {
			e, err := s.Read(t.Context(), "k")
			must(t, err)
			_, err = s.CompareAndSwap(t.Context(), "k", e.Version, []byte("value"))
			must(t, err)
		}
	})
}

// stopping makes connections that close begun after the first BEGIN. Then they wait for resume, and
// for the end of the context of that statement, if it can end.
type stopping struct {
	driver        sqldriver.Driver
	file          string
	once          sync.Once
	begun, resume chan struct{}
}

func (s *stopping) Driver() sqldriver.Driver { return s.driver }

func (s *stopping) Connect(context.Context) (sqldriver.Conn, error) {
	c, err := s.driver.Open("file:" + s.file + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	return &stoppingConn{c.(sqliteConn), s}, nil
}

type sqliteConn interface {
	sqldriver.Conn
	sqldriver.ConnBeginTx
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	sqldriver.SessionResetter
	sqldriver.Validator
}

type stoppingConn struct {
	sqliteConn
	of *stopping
}

func (c *stoppingConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	r, err := c.sqliteConn.ExecContext(ctx, query, args)
	if query == "BEGIN" {
		c.of.once.Do(func() {
			close(c.of.begun)
			<-c.of.resume
			if ctx.Done() != nil {
				<-ctx.Done()
			}
		})
	}
	return r, err
}
