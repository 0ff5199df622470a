//go:build integration

package sql

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// TestRealTLSPostgres: tenure run checks the server's certificate and presents its own, which the
// role member must have.
func TestRealTLSPostgres(t *testing.T) {
	t.Parallel()
	p := sqld.StartPostgres(t)
	admin := p.Open(t, "postgres", "postgres")
	open(t, admin, sqlstore.Postgres())
	run(t, admin, "CREATE ROLE member LOGIN", "GRANT SELECT, INSERT, UPDATE ON tenure TO member")
	tries(t, nil, map[string]string{
		"postgres://postgres@" + p.Address() + "/postgres?sslmode=require": "the server offers no TLS",
		"postgres://postgres@" + p.Address() + "/none":                     "there is no such database",
	})
	ca, cert, key := certificates.New(t)
	p.Encrypt(t, ca, cert, key)
	p.Admit(t, "hostssl all member 127.0.0.1/32 cert")
	other, _, _ := certificates.New(t)
	store := "postgres://member@" + p.Address() + "/postgres?sslmode=verify-full"
	own := "&sslcert=" + cert + "&sslkey=" + key
	tries(t, nil, map[string]string{
		store + own + "&sslrootcert=" + ca:    "",
		store + own + "&sslrootcert=" + other: "unknown authority",
		store + own:                           "sslrootcert=FILE",
		store + "&sslrootcert=" + ca:          "client certificate",
		strings.ReplaceAll(store+own+"&sslrootcert="+ca, "127.0.0.1", "localhost"): "one of the certificate's names",
	})
}

// TestRealTLSMariaDB: as TestRealTLSPostgres, with the files also from ~/.my.cnf.
func TestRealTLSMariaDB(t *testing.T) {
	t.Parallel()
	m := sqld.StartMariaDB(t)
	run(t, m.Open(t, "root", ""), "CREATE DATABASE app")
	admin := m.Open(t, "root", "app")
	open(t, admin, sqlstore.MySQL())
	run(t, admin, "CREATE USER member REQUIRE X509", "GRANT SELECT, INSERT, UPDATE ON app.* TO member")
	tries(t, nil, map[string]string{
		"mysql://root@" + m.Address() + "/app?tls=true": "the server offers no TLS",
		"mysql://root@" + m.Address() + "/none":         "there is no such database",
	})
	ca, cert, key := certificates.New(t)
	m.Encrypt(t, ca, cert, key)
	other, _, _ := certificates.New(t)
	store := "mysql://member@" + m.Address() + "/app?tls=true"
	own := "&ssl-cert=" + cert + "&ssl-key=" + key
	tries(t, nil, map[string]string{
		store + own + "&ssl-ca=" + ca:    "",
		store + own + "&ssl-ca=" + other: "unknown authority",
		store + own:                      "ssl-ca=FILE",
		store + "&ssl-ca=" + ca:          "parameters for TLS and certificates",
		store + "&ssl-ca=" + key:         "holds no certificate",
		store + "&ssl-ca=missing.pem":    "missing.pem",
		store + "&ssl-cert=" + cert:      "ssl-key",
		strings.ReplaceAll(store+own+"&ssl-ca="+ca, "127.0.0.1", "localhost"): "one of the certificate's names",
	})
	home := t.TempDir()
	text := "[client]\nssl-ca = " + ca + "\nssl_cert = " + cert + "\nssl_key = " + key + "\n"
	must(t, os.WriteFile(filepath.Join(home, ".my.cnf"), []byte(text), 0o600))
	tries(t, []string{"HOME=" + home}, map[string]string{
		store:                                    "",
		"mysql://member@" + m.Address() + "/app": "",
		"mysql://member@" + m.Address() + "/app?tls=false": "parameters for TLS and certificates",
	})
}

// tries runs a worker once on each store. For a store that cannot be used, the map has the wanted
// error, which must come at once: no wait would mend it.
func tries(t *testing.T, env []string, stores map[string]string) {
	t.Helper()
	tenure := command.Build(t)
	for store, want := range stores {
		c := exec.Command(tenure, "run", "--once", "--connect-timeout", "1h", "--store", store, "--election", "e", "--lease", "1s", "--", "true")
		c.Env = append(os.Environ(), env...)
		out, err := c.CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q:\n%s", store, err, want, out)
		}
	}
}
