package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// onServer runs a test in a bubble, on a store over a sound server.
func onServer(t *testing.T, run func(*testing.T, *server, *sql.DB, *Store), opts ...Option) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: sound}
		db, store := s.open(t, opts...)
		run(t, s, db, store)
	})
}

// read makes one call within a second.
func read(t *testing.T, s *Store) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := s.Read(ctx, "k")
	return err
}

// TestErrorSaysWhatACallWaitedFor: a busy pool and a server that cannot be reached are not a slow
// server.
func TestErrorSaysWhatACallWaitedFor(t *testing.T) {
	for _, c := range []struct {
		why                   string
		connecting, answering time.Duration
		busy                  bool
		want                  error
		text                  string
	}{
		{"no answer", 0, time.Minute, false, driver.ErrNoAnswer, "no answer from the store within 1s"},
		{"no connection", time.Minute, 0, false, driver.ErrConnecting, "no connection to the store within 1s"},
		{"a busy pool", 0, 0, true, driver.ErrPoolBusy, "no free connection in the pool within 1s: all 1 are in use"},
	} {
		onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
			db.SetMaxOpenConns(1)
			if c.busy {
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
			}
			server.connecting.Store(int64(c.connecting))
			server.answering.Store(int64(c.answering))
			err := read(t, s)
			if !errors.Is(err, c.want) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: got %v, want %q", c.why, err, c.text)
			}
			for _, other := range []error{driver.ErrNoAnswer, driver.ErrConnecting, driver.ErrPoolBusy} {
				if !errors.Is(c.want, other) && errors.Is(err, other) {
					t.Errorf("%s: %v also wraps %q", c.why, err, other)
				}
			}
			time.Sleep(time.Minute) // for the call that was given up
		})
	}
}

// TestLateAnswerKeepsItsConnection: on an overloaded server opening a connection takes longer than
// a statement. So a statement that was given up ends on its connection, and connecting goes on.
func TestLateAnswerKeepsItsConnection(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, _ *sql.DB, s *Store) {
		server.connecting.Store(int64(2 * time.Second))
		if err := read(t, s); !errors.Is(err, driver.ErrConnecting) {
			t.Errorf("the first call: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := read(t, s); err != nil {
			t.Errorf("the connection that was opened late is not used: %v", err)
		}
		server.answering.Store(int64(2 * time.Second))
		if err := read(t, s); !errors.Is(err, driver.ErrNoAnswer) {
			t.Errorf("a slow answer: %v", err)
		}
		time.Sleep(2 * time.Second)
		server.answering.Store(0)
		if err := read(t, s); err != nil {
			t.Errorf("after the late answer: %v", err)
		}
		if opened, closed := server.opened.Load(), server.closed.Load(); opened != 1 || closed != 0 {
			t.Errorf("%d connections opened and %d closed, want one that stays", opened, closed)
		}
	})
}

// TestNothingIsSentTooLate: a write that waited until its time was over sends nothing more, whether
// it waited for a connection or for the answer to the read before an insert.
func TestNothingIsSentTooLate(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		swap := func(prev driver.Version, want error, sent string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.CompareAndSwap(ctx, "k", prev, []byte("v")); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			time.Sleep(time.Second)
			if got := server.statements(); got != sent {
				t.Errorf("sent %q, want %q", got, sent)
			}
		}
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		swap("stamp era", driver.ErrPoolBusy, "")
		_ = conn.Close()
		synctest.Wait()
		db.SetMaxOpenConns(0)
		server.answering.Store(int64(1500 * time.Millisecond))
		swap("", driver.ErrNoAnswer, "SELECT")
		time.Sleep(time.Minute)
		if got := server.statements(); got != "SELECT" {
			t.Errorf("sent %s", got)
		}
	})
}

// TestReservedConnection: other code of the program uses the whole pool.
func TestReservedConnection(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		db.SetMaxOpenConns(2)
		if err := read(t, s); err != nil {
			t.Fatal(err)
		}
		other, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan *sql.Conn)
		go func() {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Error(err)
			}
			waited <- conn
		}()
		for range 2 {
			if err := read(t, s); err != nil {
				t.Errorf("beside a busy pool: %v", err)
			}
			time.Sleep(2 * reservedFor)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_ = (<-waited).Close()
		if in := db.Stats().InUse; in != 1 {
			t.Errorf("%d connections are in use after Close, want that of the other code", in)
		}
		_ = other.Close()
	}, WithReservedConnection())
}

// TestReservedConnectionIsExchanged: a reserved connection may lead to a server that has become a
// standby, and no lifetime of the pool ends it.
func TestReservedConnectionIsExchanged(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		db.SetConnMaxLifetime(time.Minute)
		for i := range 4 {
			if opened := server.opened.Load(); int(opened) != i {
				t.Errorf("%d connections after %d calls with an error or a pause", opened, i)
			}
			if i%2 == 0 {
				time.Sleep(time.Hour)
			} else {
				server.answers = func(string) ([]string, int64, error) { return nil, 0, errors.New("read only") }
				_ = read(t, s)
				time.Sleep(time.Minute + time.Second)
			}
			server.answers = sound
			if err := read(t, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}, WithReservedConnection())
}

// TestOneCallConnects: attempts to connect to an overloaded server do not delay each other, and
// each takes its time although the calls are shorter.
func TestOneCallConnects(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, _ *sql.DB, s *Store) {
		server.connecting.Store(int64(4500 * time.Millisecond))
		results := make(chan error, 20)
		for range 4 {
			for range 5 {
				go func() { results <- read(t, s) }()
			}
			for range 5 {
				if err := <-results; !errors.Is(err, driver.ErrConnecting) {
					t.Errorf("got %v", err)
				}
			}
		}
		synctest.Wait()
		if err := read(t, s); err != nil {
			t.Error(err)
		}
		if opened := server.opened.Load(); opened != 1 {
			t.Errorf("%d connections were opened, want one", opened)
		}
	})
}

// TestFreedConnectionGoesToACallThatWaits, although another call is still connecting.
func TestFreedConnectionGoesToACallThatWaits(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, _ *sql.DB, s *Store) {
		server.answering.Store(int64(1500 * time.Millisecond))
		first := make(chan error)
		go func() { first <- read(t, s) }()
		synctest.Wait()
		server.connecting.Store(int64(time.Hour))
		if err := <-first; !errors.Is(err, driver.ErrNoAnswer) {
			t.Fatalf("the first call: %v", err)
		}
		server.answering.Store(0)
		go func() { first <- read(t, s) }() // asks for a connection, in vain
		synctest.Wait()
		if err := read(t, s); err != nil {
			t.Errorf("the connection of the first call is not used: %v", err)
		}
		<-first
		time.Sleep(time.Hour)
	})
}

// TestFullPoolKeepsNoLateStatement: the next call needs the connection of a call that was given up.
func TestFullPoolKeepsNoLateStatement(t *testing.T) {
	onServer(t, func(t *testing.T, server *server, db *sql.DB, s *Store) {
		db.SetMaxOpenConns(1)
		server.answering.Store(int64(time.Hour))
		if err := read(t, s); !errors.Is(err, driver.ErrNoAnswer) {
			t.Errorf("a lost answer: %v", err)
		}
		server.answering.Store(0)
		if err := read(t, s); err != nil {
			t.Errorf("after a lost answer: %v", err)
		}
		time.Sleep(time.Hour)
	})
}
