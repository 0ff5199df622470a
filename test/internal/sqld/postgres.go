package sqld

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/tenure-go/tenure/test/internal/ports"
)

// patience is how long a server may take to answer after its start.
const patience = time.Minute

// Postgres is a PostgreSQL server.
type Postgres struct {
	process
	port int
}

// StartPostgres runs a PostgreSQL server for the length of a test, with the package's settings and
// these, such as "fsync=off". Everybody on this machine may connect as any role.
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	p := newPostgres(t)
	must(t, p.run(tool("initdb"), "-D", p.data(), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale"))
	p.settle(settings)
	must(t, p.Start())
	return p
}

func newPostgres(t testing.TB) *Postgres {
	t.Helper()
	p := &Postgres{port: freePort(t)}
	p.dir, p.user = directory(t, "postgres"), "postgres"
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) settle(settings []string) {
	p.command = []string{
		tool("postgres"), "-D", p.data(), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=" + ports.Host, "-c", "unix_socket_directories=" + p.dir,
	}
	for _, s := range settings {
		p.command = append(p.command, "-c", s)
	}
}

// tool is the path of a program of PostgreSQL, which Debian keeps outside of PATH.
func tool(name string) string {
	if all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(all) > 0 {
		return slices.Max(all)
	}
	return name
}

// Start runs the server again, on its files and port.
func (p *Postgres) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.start(ctx, func(ctx context.Context) error { return ping(ctx, "pgx", p.DSN("postgres", "postgres")) })
}

// Stop ends the server without waiting for its clients, as an orderly shutdown does.
func (p *Postgres) Stop() error { return p.signal(syscall.SIGINT, true) }

// Kill ends the server at once. It is as after a crash: the next start recovers.
func (p *Postgres) Kill() error {
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := p.all(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// Pause stops the server with all of its processes in their tracks.
func (p *Postgres) Pause() error { return p.all(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Postgres) Resume() error { return p.all(syscall.SIGCONT) }

// Address is where the server listens.
func (p *Postgres) Address() string { return ports.Address(p.port) }

// DSN is a URL of a database on the server for a role.
func (p *Postgres) DSN(role, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s", role, p.Address(), database)
}

// Open is a pool of connections for a role, until the test ends.
func (p *Postgres) Open(t testing.TB, role, database string) *sql.DB {
	t.Helper()
	return Open(t, "pgx", p.DSN(role, database))
}

// Standby starts a second server that follows this one, asynchronously. It loses what it has not
// received when it is promoted.
func (p *Postgres) Standby(t testing.TB) *Postgres {
	t.Helper()
	s := newPostgres(t)
	must(t, s.run(tool("pg_basebackup"), "-D", s.data(), "-h", ports.Host, "-p", strconv.Itoa(p.port), "-U", "postgres",
		"-X", "stream", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"))
	s.settle(nil)
	must(t, s.Start())
	return s
}

// Separate makes a standby stop to follow. It returns when no write reaches it any more.
func (p *Postgres) Separate(t testing.TB) {
	t.Helper()
	db := p.Open(t, "postgres", "postgres")
	must(t, execute(db, "ALTER SYSTEM SET primary_conninfo = ''"))
	must(t, execute(db, "SELECT pg_reload_conf()"))
	for {
		var receivers int
		must(t, db.QueryRow("SELECT count(*) FROM pg_stat_wal_receiver").Scan(&receivers))
		if receivers == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Promote makes a primary of a standby.
func (p *Postgres) Promote(t testing.TB) {
	t.Helper()
	must(t, execute(p.Open(t, "postgres", "postgres"), "SELECT pg_promote(true)"))
}

func execute(db *sql.DB, query string) error {
	_, err := db.Exec(query)
	return err
}

// Open is a pool of connections of a driver, until the test ends.
func Open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func ping(ctx context.Context, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.PingContext(ctx)
}

// directory is one for a test that the user of a server owns: those of package testing are closed
// to others.
func directory(t testing.TB, user string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqld-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	must(t, home(dir, user))
	return dir
}

func freePort(t testing.TB) int {
	t.Helper()
	found, err := ports.Free(1)
	must(t, err)
	return found[0]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
