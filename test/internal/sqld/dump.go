package sqld

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
)

// Dump returns the statements that recreate the tables of a database, as pg_dump writes them.
func (p *Postgres) Dump(t testing.TB, database string) []byte {
	t.Helper()
	return p.output(t, p.client("pg_dump", "--clean", "--if-exists", database)...)
}

// Restore runs the statements of a dump.
func (p *Postgres) Restore(t testing.TB, database string, dump []byte) {
	t.Helper()
	p.output(t, p.client("psql", "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", p.file(t, dump), database)...)
}

func (p *Postgres) client(name string, args ...string) []string {
	return append([]string{tool(name), "-h", ports.Host, "-p", strconv.Itoa(p.port), "-U", "postgres"}, args...)
}

// Dump returns the statements that recreate the tables of a database, as mariadb-dump writes them.
func (m *MariaDB) Dump(t testing.TB, database string) []byte {
	t.Helper()
	return m.output(t, m.client("mariadb-dump", database)...)
}

// Restore runs the statements of a dump.
func (m *MariaDB) Restore(t testing.TB, database string, dump []byte) {
	t.Helper()
	m.output(t, m.client("mariadb", "-e", "source "+m.file(t, dump), database)...)
}

func (m *MariaDB) client(name string, args ...string) []string {
	return append([]string{name, "--no-defaults", "-h", ports.Host, "-P", strconv.Itoa(m.port), "-u", "root"}, args...)
}

// file creates a file that the user of the server may read, and returns its path.
func (s *server) file(t testing.TB, content []byte) string {
	t.Helper()
	f, err := os.CreateTemp(s.Dir, "file-")
	must(t, err)
	_, err = f.Write(content)
	must(t, err)
	must(t, f.Close())
	must(t, os.Chmod(f.Name(), 0o644))
	path, err := filepath.Abs(f.Name())
	must(t, err)
	return path
}
