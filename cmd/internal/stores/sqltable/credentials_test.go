//go:build unix

package sqltable

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

// heard returns options whose logger writes into the buffer.
func heard() (kind.Options, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return kind.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}, log
}

func put(t *testing.T, file, text string) {
	t.Helper()
	must.Write(t, file, text)
}

func TestServiceFileIsReadForEachConnection(t *testing.T) {
	ca, _, _ := certificates.New(t)
	file := filepath.Join(t.TempDir(), "service.conf")
	t.Setenv("PGSERVICEFILE", file)
	service := func(more ...string) string {
		return "[app]\nhost=db-1\ndbname=app\n" + strings.Join(more, "\n") + "\n"
	}
	const verified, user = "sslmode=verify-full", "user=u"
	root := "sslrootcert=" + ca
	put(t, file, service(user, "password=p", verified, root))
	s := &Place{Scheme: "postgres", URL: "//?service=app"}
	o, log := heard()
	cfg, err := s.postgres(o)
	must.OK(t, err)
	before := beforePostgres(o, cfg, s.postgres)
	for _, step := range []struct {
		why, text, want string
		warnings        int
	}{
		{"the first", service(user, "password=p", verified, root), "u p", 0},
		{"another password", service(user, "password=q", verified, root), "u q", 0},
		{"another user", service("user=v", "password=r", verified, root), "v r", 0},
		{"no password", service(user, verified, root), "v r", 1},
		{"another host", strings.Replace(service(user, "password=x", verified, root), "db-1", "db-2", 1), "v r", 2},
		{"no check of certificates", service(user, "password=x", "sslmode=require"), "v r", 2},
		{"a check of the authority alone", service(user, "password=x", "sslmode=verify-ca", root), "v r", 2},
		{"no service", "[ap", "v r", 3},
		{"the whole file", service(user, "password=x", verified, root), "u x", 3},
	} {
		put(t, file, step.text)
		c := cfg.Copy()
		must.OK(t, before(t.Context(), c))
		got := c.User + " " + c.Password
		if n := strings.Count(log.String(), "stay in use"); got != step.want || c.Host != "db-1" || c.TLSConfig.InsecureSkipVerify || n != step.warnings {
			t.Errorf("%s: %s at %s with %d warnings, want %s with %d:\n%s", step.why, got, c.Host, n, step.want, step.warnings, log)
		}
	}
	if strings.Contains(log.String(), "password=") {
		t.Errorf("a password is logged:\n%s", log)
	}
}

func TestClientFileIsReadForEachConnection(t *testing.T) {
	ca, _, _ := certificates.New(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("MYSQL_PWD", "")
	file := filepath.Join(home, ".my.cnf")
	const first = "[client]\nhost=db-1\nuser=u\npassword=p\n"
	put(t, file, first+"ssl-ca="+ca+"\n")
	o, log := heard()
	opened, err := (&Place{Scheme: "mysql", URL: "///app"}).mysqlConnector(o)
	must.OK(t, err)
	source := opened.(mysqlConnector).source
	last := source.Get(t.Context())
	for _, step := range []struct {
		why, text string
		taken     bool
	}{
		{"another password", "[client]\nhost=db-1\nuser=u\npassword=q\nssl-ca=" + ca + "\n", true},
		{"another host", "[client]\nhost=db-2\nuser=u\npassword=q\nssl-ca=" + ca + "\n", false},
		{"no check of certificates", first, false},
		{"a missing authority", first + "ssl-ca=" + ca + ".none\n", false},
		{"no password", "[client]\nhost=db-1\nuser=u\nssl-ca=" + ca + "\n", false},
		{"gone", "", false},
		{"the first", first + "ssl-ca=" + ca + "\n", true},
	} {
		put(t, file, step.text)
		now := source.Get(t.Context())
		if taken := now != last; taken != step.taken {
			t.Errorf("%s: taken is %t:\n%s", step.why, taken, log)
		}
		last = now
	}
}

func TestMySQLClientFile(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	if got := clientFile(); len(got) != 0 {
		t.Errorf("without a file: got %v", got)
	}
	file := filepath.Join(os.Getenv("HOME"), ".my.cnf")
	text := "[mysqld]\npassword=no\n[client]\n# a comment\nuser = bob\npassword=\"a=b\"\nssl_ca=ca.pem\n[other]\nuser=eve\n"
	must.Write(t, file, text)
	if got := clientFile(); got["user"] != "bob" || got["password"] != "a=b" || got["ssl-ca"] != "ca.pem" {
		t.Errorf("got %v", got)
	}
}

// TestErrorOfManyAddresses: the message is one line.
func TestErrorOfManyAddresses(t *testing.T) {
	if got := theServers(errors.New("failed to connect:\n\tone: refused\n\tother: no such host\n")).Error(); got != "other: no such host" {
		t.Errorf("got %q", got)
	}
}
