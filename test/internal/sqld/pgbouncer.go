package sqld

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
)

// PgBouncer is a pooler in front of a PostgreSQL server.
type PgBouncer struct{ server }

// RunPgBouncer runs a pooler. The mode is session, transaction or statement. Only the role postgres
// may connect, without a password. The pooler tries a failed server again after 1 s; the default is
// 15 s.
func RunPgBouncer(p *Postgres, mode string) (*PgBouncer, error) {
	b := new(PgBouncer)
	return b, b.settle("postgres", "pgx", func() string { return b.DSN("postgres", "postgres") }, func(dir string) error {
		users, file := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
		b.Command = []string{"pgbouncer", file}
		return errors.Join(
			os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644),
			os.WriteFile(file, fmt.Appendf(nil, settings, ports.Host, p.port, ports.Host, b.port, users, mode), 0o644),
			b.Start(),
		)
	})
}

// StartPgBouncer is RunPgBouncer for the length of a test.
func StartPgBouncer(t testing.TB, p *Postgres, mode string) *PgBouncer {
	t.Helper()
	b, err := RunPgBouncer(p, mode)
	return started(t, b, err)
}

const settings = `[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
server_login_retry = 1
`

// DSN returns the URL of a database behind the pooler for a role. The client sends statements
// without names, because in transaction mode the next transaction may get another session.
func (b *PgBouncer) DSN(role, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?default_query_exec_mode=exec", role, ports.Address(b.port), database)
}
