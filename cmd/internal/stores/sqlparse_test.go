package stores

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

func TestParseSQL(t *testing.T) {
	for _, c := range []struct {
		raw, shown string
		want       SQL
	}{
		{"postgres://bob:geheim@h:1,i:2/db?table=s.t&sslmode=require", "postgres://bob:***@h:1,i:2/db?sslmode=require&table=s.t",
			SQL{Scheme: "postgres", URL: "//bob:geheim@h:1,i:2/db?sslmode=require", Table: "s.t"}},
		{"postgresql://bob:geheim@h/db", "postgres://bob:***@h/db", SQL{Scheme: "postgres", URL: "//bob:geheim@h/db"}},
		{"mariadb://bob@h/db", "mysql://bob@h/db", SQL{Scheme: "mysql", URL: "//bob@h/db"}},
		{"mysql://bob:a@geheim@h/db", "mysql://bob:***@h/db", SQL{Scheme: "mysql", URL: "//bob:a@geheim@h/db"}},
		{"sqlite:/a@b/c.db", "sqlite:/a@b/c.db", SQL{Scheme: "sqlite", URL: "/a@b/c.db"}},
		{"postgres://?service=x&push=on", "postgres://?service=x", SQL{Scheme: "postgres", URL: "//?service=x"}},
		{"postgres://h/db?push=off", "postgres://h/db?push=off", SQL{Scheme: "postgres", URL: "//h/db", Push: "off"}},
		{"postgres://h/db?listen=i:2", "postgres://h/db?listen=i:2", SQL{Scheme: "postgres", URL: "//h/db", Listen: "i:2"}},
		{"mysql://bob@h/db?tls=true", "mysql://bob@h/db?tls=true", SQL{Scheme: "mysql", URL: "//bob@h/db?tls=true"}},
		{"mysql://h/db?ssl-ca=a.pem", "mysql://h/db?ssl-ca=a.pem", SQL{Scheme: "mysql", URL: "//h/db?ssl-ca=a.pem"}},
		{"sqlite:/a/b.db?table=t", "sqlite:/a/b.db?table=t", SQL{Scheme: "sqlite", URL: "/a/b.db", Table: "t"}},
		{"sqlite:/a/b.db?pristine=true&table=t", "sqlite:/a/b.db?table=t", SQL{Scheme: "sqlite", URL: "/a/b.db", Table: "t", Pristine: true}},
		{"sqlite:///a/b.db", "sqlite:/a/b.db", SQL{Scheme: "sqlite", URL: "/a/b.db"}},
		{"sqlite:b.db", "sqlite:b.db", SQL{Scheme: "sqlite", URL: "b.db"}},
	} {
		p, err := Parse("--store", c.raw)
		pushes := c.want.Scheme == "postgres" && c.want.Push == "" || c.want.Scheme == "sqlite"
		if err != nil || *p.SQL != c.want || p.String() != c.shown || p.Pushes() != pushes {
			t.Errorf("%s: got %#v, %v", c.raw, p.SQL, err)
		}
	}
}

func TestParseSQLRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://h/db?password=geheim":       `--store "postgres://h/db?password=***": has a secret behind ?, where others could see it`,
		"postgres://u:a@geheim@h/db":            `--store "postgres://u:***@h/db": is not a valid URL`,
		"postgresql://u:geheim":                 `--store "postgresql://***": is not a valid URL`,
		"postgres://u:a%zzgeheim@h/db":          `--store "postgres://u:***@h/db": is not a valid URL`,
		"postgres://h/db?geheim":                `--store "postgres://h/db?***": an unknown parameter has no value`,
		"mysql://h/db?password=a&geheim=b":      `--store "mysql://h/db?password=***": has a secret behind ?, where others could see it`,
		"postgres://h/db?table=a.b.c":           `--store "postgres://h/db?table=a.b.c": sqlstore: table "a.b.c": more than one dot`,
		"postgres://h/db?table=":                `--store "postgres://h/db?table=": parameter "table" is empty`,
		"postgres://h/db?table=a&table=b":       `--store "postgres://h/db?table=a&table=b": parameter "table" is given twice`,
		"postgres://u:p?geheim@h/db":            `--store "postgres://***": has an @ behind the first / or ?`,
		"postgres://u:12/geheim@h/db":           `--store "postgres://***": has an @ behind the first / or ?`,
		"mysql://u:p?geheim=x@h/db":             `--store "mysql://***": has an @ behind the first / or ?`,
		"postgres://u:geheim?x=1@h/db":          `--store "postgres://***": has an @ behind the first / or ?`,
		"postgres://h/db?push=no":               `--store "postgres://h/db?push=no": parameter push is "no", not on or off`,
		"postgres://h/db?push=off&listen=a:1":   `--store "postgres://h/db?push=off&listen=a:1": has push=off and an address to listen at`,
		"postgres://h/db?listen=a":              `--store "postgres://h/db?listen=a": parameter listen is "a", not HOST:PORT`,
		"mysql://h/db?push=off":                 `--store "mysql://h/db?push=off": parameter "push" is unknown`,
		"mysql://h/db?ssl-ca=a&tls=skip-verify": `--store "mysql://h/db?ssl-ca=a&tls=skip-verify": has ssl-ca, and tls=skip-verify, which checks no certificate`,
		"postgres://h/db#x":                     `--store "postgres://h/db#***": has a fragment behind #`,
		"mysql://h":                             `--store "mysql://h": names no database`,
		"mysql://h/":                            `--store "mysql://h/": names no database`,
		"mysql://h/db?sslmode=x":                `--store "mysql://h/db?sslmode=x": parameter "sslmode" is unknown`,
		"sqlite:":                               `--store "sqlite:": names no file; all candidates must share one`,
		"sqlite::memory:":                       `--store "sqlite::memory:": names no file; all candidates must share one`,
		"sqlite:a.db?mode=ro":                   `--store "sqlite:a.db?mode=ro": has a parameter that SQLite does not take`,
		"sqlite:a.db?pristine=yes":              `--store "sqlite:a.db?pristine=yes": parameter pristine is "yes", not true`,
		"postgres://h/db?pristine=true":         `--store "postgres://h/db?pristine=true": parameter pristine is for SQLite, not for postgres`,
		"mysql://bob:geheim@h/db?charset=abc":   `--store "mysql://bob:***@h/db?charset=***": parameter "charset" is unknown`,
	} {
		_, err := Parse("--store", raw)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", raw, err, want)
		}
	}
}

// The commands of the databases' own clients name the user. The clients ask for the password.
func TestCommandsOfDatabases(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://bob:geheim@h:1/db?sslmode=require": `psql 'postgres://bob@h:1/db?sslmode=require' -c "SELECT `,
		"postgres://bob%40x:geheim@h/db":               `psql 'postgres://h/db' -c "SELECT `,
		"postgres://h/db":                              `psql 'postgres://h/db' -c "SELECT `,
		"mysql://bob:geheim@h:1/db?tls=true":           `mysql -h h -P 1 -u bob -p db -e "SELECT `,
		"mysql://bob@h/db":                             `mysql -h h -u bob db -e "SELECT `,
		"mysql://h/db":                                 `mysql -h h db -e "SELECT `,
		"sqlite:/a/b.db":                               `sqlite3 /a/b.db "SELECT `,
	} {
		p, err := Parse("--store", raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Commands("k").Look; !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", raw, got)
		}
	}
}

func TestMySQLClientFile(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	if got := clientFile(); len(got) != 0 {
		t.Errorf("without a file: got %v", got)
	}
	file := filepath.Join(os.Getenv("HOME"), ".my.cnf")
	text := "[mysqld]\npassword=no\n[client]\n# a comment\nuser = bob\npassword=\"a=b\"\nssl_ca=ca.pem\n[other]\nuser=eve\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := clientFile(); got["user"] != "bob" || got["password"] != "a=b" || got["ssl-ca"] != "ca.pem" {
		t.Errorf("got %v", got)
	}
}

func TestSQLiteFileIsCreatedOnlyOnRequest(t *testing.T) {
	p, err := Parse("--store", "sqlite:"+filepath.Join(t.TempDir(), "a b.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Connect(t.Context(), p, "k", Options{}, Patience{})
	if err == nil || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("no file: got %v", err)
	}
	for _, o := range []Options{{Create: true}, {}} {
		s, err := Connect(t.Context(), p, "k", o, Patience{})
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if _, err := s.Driver.Read(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if found, err := s.Inspect(t.Context(), time.Second); err != nil || len(found) != 0 {
			t.Errorf("got findings %v, %v", found, err)
		}
		if driver.AbilitiesOf(s.Driver).MinLease() != time.Second {
			t.Error("the shortest lease is not that of the driver")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestErrorOfManyAddresses: the message is one line.
func TestErrorOfManyAddresses(t *testing.T) {
	if got := theServers(errors.New("failed to connect:\n\tone: refused\n\tother: no such host\n")).Error(); got != "other: no such host" {
		t.Errorf("got %q", got)
	}
}
