package sqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
)

// Postgres is a PostgreSQL server.
type Postgres struct{ server }

// RunPostgres runs a PostgreSQL server with the Debian package's settings and these, such as
// "fsync=off". Any process on this machine may connect as any role. End ends the server.
func RunPostgres(settings ...string) (*Postgres, error) {
	p := new(Postgres)
	return p, p.create(settings)
}

// StartPostgres is RunPostgres for the length of a test, with files in memory.
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	p := &Postgres{server{home: memory()}}
	return started(t, p, p.create(settings))
}

func (p *Postgres) create(settings []string) error {
	return p.settle(func(dir string) error {
		if p.programs != "" { // the server's user can read only a copy
			own := filepath.Join(dir, "programs")
			if err := os.CopyFS(own, os.DirFS(p.programs)); err != nil {
				return err
			}
			p.programs = own
		}
		if err := p.initialize(); err != nil {
			return err
		}
		return p.begins(settings)
	})
}

// settle gives the server its directory. PostgreSQL has a process for each connection. A stop does
// not wait for the clients.
func (p *Postgres) settle(begin func(dir string) error) error {
	p.Family, p.StopBy = true, os.Interrupt
	return p.server.settle("postgres", "pgx", func() string { return p.DSN("postgres", "postgres") }, begin)
}

// initialize creates an empty database cluster.
func (p *Postgres) initialize() error {
	return p.run(p.tool("initdb"), "-D", p.data(), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale")
}

func (p *Postgres) data() string { return filepath.Join(p.Dir, "data") }

// begins starts the server for the first time, on a directory with the files of a cluster.
func (p *Postgres) begins(settings []string) error {
	p.Command = []string{
		p.tool("postgres"), "-D", p.data(), "-p", strconv.Itoa(p.port),
		"-c", "listen_addresses=" + ports.Host, "-c", "unix_socket_directories=" + p.Dir,
	}
	for _, s := range settings {
		p.Command = append(p.Command, "-c", s)
	}
	return p.Start()
}

// tool returns the path of a program of PostgreSQL, which Debian keeps outside of PATH.
func (p *Postgres) tool(name string) string {
	if p.programs != "" {
		return filepath.Join(p.programs, "bin", name)
	}
	if all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(all) > 0 {
		return slices.Max(all)
	}
	return name
}

// Encrypt restarts the server with TLS, from PEM files. Clients may still connect without TLS.
func (p *Postgres) Encrypt(t testing.TB, ca, cert, key string) {
	t.Helper()
	p.Command = append(p.Command, "--ssl=on")
	p.encrypt(t, map[string]string{"--ssl_ca_file=": ca, "--ssl_cert_file=": cert, "--ssl_key_file=": key})
}

// Admit restarts the server with only these rules in pg_hba.conf, after one for the role postgres,
// which still needs no password.
func (p *Postgres) Admit(t testing.TB, rules ...string) {
	t.Helper()
	own := "host all,replication postgres " + ports.Host + "/32 trust"
	rules = append([]string{own}, rules...)
	must(t, os.WriteFile(filepath.Join(p.data(), "pg_hba.conf"), []byte(strings.Join(rules, "\n")+"\n"), 0o644))
	must(t, p.Stop())
	must(t, p.Start())
}

// DSN returns the URL of a database on the server for a role.
func (p *Postgres) DSN(role, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s", role, p.Address(), database)
}

// Open returns a pool of connections for a role. The end of the test closes it.
func (p *Postgres) Open(t testing.TB, role, database string) *sql.DB {
	t.Helper()
	return Open(t, "pgx", p.DSN(role, database))
}

// RunStandby runs a second server that follows this one asynchronously. When it is promoted, it
// lacks the writes that it has not received.
func (p *Postgres) RunStandby() (*Postgres, error) {
	s := &Postgres{server{home: p.home}}
	return s, s.settle(func(string) error {
		if err := s.run(p.tool("pg_basebackup"), "-D", s.data(), "-h", ports.Host, "-p", strconv.Itoa(p.port), "-U", "postgres",
			"-X", "stream", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"); err != nil {
			return err
		}
		return s.begins(nil)
	})
}

// Standby is RunStandby for the length of a test. It returns when the primary sends it its writes.
func (p *Postgres) Standby(t testing.TB) *Postgres {
	t.Helper()
	primary := p.Open(t, "postgres", "postgres")
	standbys := func() (n int) {
		must(t, primary.QueryRow("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'").Scan(&n))
		return n
	}
	before := standbys()
	s, err := p.RunStandby()
	started(t, s, err)
	for standbys() == before {
		time.Sleep(time.Millisecond)
	}
	return s
}

// Separate cuts a standby off from its primary. It returns when no more writes reach the standby.
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

// Promote makes a standby the primary.
func (p *Postgres) Promote(t testing.TB) {
	t.Helper()
	must(t, execute(p.Open(t, "postgres", "postgres"), "SELECT pg_promote(true)"))
}

func execute(db *sql.DB, query string) error {
	_, err := db.Exec(query)
	return err
}

// Open returns a pool of connections of a driver. The end of the test closes it.
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// small is the size of a small disk. It holds a new cluster and a few segments of its log.
const small = 160 << 20

// StartPostgresOnSmallDisk is StartPostgres on a file system of its own in memory. It must run as
// root.
func StartPostgresOnSmallDisk(t testing.TB) *Postgres {
	t.Helper()
	p := new(Postgres)
	t.Cleanup(func() {
		_ = p.Kill()
		_ = syscall.Unmount(p.Dir, syscall.MNT_DETACH)
		p.End()
	})
	must(t, p.settle(func(dir string) error {
		if err := mount(dir, p.User); err != nil {
			return err
		}
		if err := p.initialize(); err != nil {
			return err
		}
		return p.begins([]string{"min_wal_size=32MB", "max_wal_size=32MB"})
	}))
	return p
}

// memory returns the directory of a file system in memory, if there is one with enough space for
// the servers of tests. There a new server takes half of the processor time. A server that is
// killed loses nothing there that it would keep on a disk.
func memory() string {
	const dir, enough = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || int64(fs.Bavail)*fs.Bsize < enough {
		return ""
	}
	return dir
}

func mount(dir, user string) error {
	uid, gid, err := process.IDs(user)
	if err != nil {
		return err
	}
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755,uid=%d,gid=%d", small, uid, gid))
}

// Fill fills the disk. The returned function frees the space.
func (p *Postgres) Fill(t testing.TB) (free func()) {
	t.Helper()
	name := filepath.Join(p.Dir, "filler")
	f, err := os.Create(name)
	must(t, err)
	defer func() { _ = f.Close() }()
	if _, err := io.CopyN(f, zeros{}, small); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return func() { must(t, os.Remove(name)) }
}

type zeros struct{}

// Read returns zeros.
func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
