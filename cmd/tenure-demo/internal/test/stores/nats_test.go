//go:build integration

package stores_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/compat/nats-kv-leader-elect/mixed"
	"github.com/tenure-go/tenure/driver"
)

// accounts has users that each lack some rights.
const accounts = `
listen: "127.0.0.1:-1"
jetstream: { store_dir: %DIR% }
accounts: {
  A: { jetstream: enabled, users: [
    {user: all, password: s3cret}
    {user: deaf, password: s3cret, permissions: {subscribe: ["nothing"]}}
    {user: mute, password: s3cret, permissions: {publish: ["nothing"]}}
  ] }
  B: { users: [ {user: plain, password: s3cret} ] }
}`

func startServer(t *testing.T, o *server.Options) string {
	t.Helper()
	return strings.TrimPrefix(servers.Start(t, o).ClientURL(), "nats://")
}

func withAccounts(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.conf")
	text := strings.ReplaceAll(accounts, "%DIR%", `"`+filepath.ToSlash(t.TempDir())+`"`)
	must.Write(t, file, text)
	o, err := server.ProcessConfigFile(file)
	must.OK(t, err)
	return startServer(t, o)
}

func withoutJetStream(t *testing.T) string {
	return startServer(t, &server.Options{})
}

func TestNATSErrorsHaveARemedy(t *testing.T) {
	t.Parallel()
	host, plain := withAccounts(t), withoutJetStream(t)
	for _, c := range []struct{ why, url, err, hint string }{
		{"no server", "nats://127.0.0.1:1/E", "no server answers", "check the host"},
		{"no credentials", "nats://" + host + "/E", "Authorization", "user:password@"},
		{"a wrong password", "nats://all:wrong@" + host + "/E", "Authorization", "user:password@"},
		{"no TLS", "tls://" + plain + "/E", "secure connection", "nats:// instead of tls://"},
		{"no JetStream", "nats://" + plain + "/E", "no JetStream", "-js"},
		{"no JetStream in the account", "nats://plain:s3cret@" + host + "/E", "account has no JetStream", "account's configuration"},
		{"no bucket", "nats://all:s3cret@" + host + "/E", "no bucket E", "makes it, and so does: nats --server nats://***@" + host + " kv add E"},
		{"no right to ask", "nats://mute:s3cret@" + host + "/E", "permission denied", "grant"},
		{"no right to receive", "nats://deaf:s3cret@" + host + "/E", "permission denied", "grant"},
	} {
		t.Run(c.why, func(t *testing.T) {
			_, err := enter(t, c.url, false, c.err)
			places.Says(t, err, c.err, c.hint)
			if waits := c.why == "no server"; fault.Passes(err) != waits {
				t.Errorf("waiting helps: %v", !waits)
			}
		})
	}
}

func TestNATSIsConnectedOnce(t *testing.T) {
	t.Parallel()
	s := servers.Start(t, &server.Options{JetStream: true})
	if _, err := enter(t, s.ClientURL()+"/E", true, ""); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Varz(nil); err != nil || v.TotalConnections != 1 {
		t.Errorf("%d connections, %v", v.TotalConnections, err)
	}
}

// The error quotes a server that hangs up while the client still writes, with the server's reason.
func TestOpenQuotesTheServerThatHangsUp(t *testing.T) {
	t.Parallel()
	full := startServer(t, &server.Options{MaxConn: 1})
	only, err := nats.Connect(full)
	must.OK(t, err)
	defer only.Close()
	for _, c := range []struct {
		url, err, hint string
		waits          bool
	}{
		{"nats://" + full + "/E", "maximum connections exceeded", "max_connections", true},
		{"nats://all:wrong@" + withAccounts(t) + "/E", "Authorization", "user:password@", false},
	} {
		for range 100 {
			_, err := stores.Open(t.Context(), places.Parse(t, c.url), stores.Options{})
			var f *fault.Error
			if !errors.As(err, &f) || !strings.Contains(f.Error(), c.err) || !strings.Contains(f.Hint, c.hint) || f.Passing != c.waits {
				t.Fatalf("got %v", err)
			}
		}
	}
}

// TestInspectNATS: Inspect reports unsafe settings of a bucket before an election uses it.
func TestInspectNATS(t *testing.T) {
	t.Parallel()
	host, other := withAccounts(t), withAccounts(t)
	js := servers.JetStream(t, "nats://all:s3cret@"+host)
	for _, c := range []struct {
		why, host, setting, remedy string
		bucket                     jetstream.KeyValueConfig
	}{
		{"records expire under their leader", host, "ttl", "nats kv edit SHORT --ttl 45s",
			jetstream.KeyValueConfig{Bucket: "SHORT", TTL: 10 * time.Second, Storage: jetstream.FileStorage}},
		{"a restart forgets the terms", host, "storage", "--storage file",
			jetstream.KeyValueConfig{Bucket: "MEMORY", Storage: jetstream.MemoryStorage}},
		{"each cluster elects a leader", host + "," + other, "servers", "one cluster only",
			jetstream.KeyValueConfig{Bucket: "TWICE", Storage: jetstream.FileStorage}},
	} {
		t.Run(c.why, func(t *testing.T) {
			if _, err := js.CreateKeyValue(t.Context(), c.bucket); err != nil {
				t.Fatal(err)
			}
			s, err := enter(t, "nats://all:s3cret@"+c.host+"/"+c.bucket.Bucket, true, "")
			must.OK(t, err)
			found, err := s.Inspect(t.Context(), 15*time.Second)
			must.OK(t, err)
			i := slices.IndexFunc(found, func(f driver.Finding) bool { return f.Severity == driver.Unsafe })
			if i < 0 || found[i].Setting != c.setting || !strings.Contains(found[i].Remedy, c.remedy) {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestOpenWhileMigrating: a bucket without a TTL is not that of the old candidates. Waiting does
// not help.
func TestOpenWhileMigrating(t *testing.T) {
	t.Parallel()
	_, err := enter(t, "nats://all:s3cret@"+withAccounts(t)+"/E?migrating=true", true, "")
	var f *fault.Error
	if !errors.As(err, &f) || !errors.Is(err, mixed.ErrUnshareable) || !strings.Contains(f.Hint, "leave out ?migrating=true") || fault.Passes(err) {
		t.Errorf("got %v", err)
	}
}

// inContexts creates a directory of contexts for the nats command.
func inContexts(t *testing.T, name, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	dir = filepath.Join(dir, "nats", "context")
	must.OK(t, os.MkdirAll(dir, 0o700))
	must.Write(t, filepath.Join(dir, name+".json"), text)
}

func openContext(t *testing.T, name, want string) error {
	t.Helper()
	p, err := stores.ParseContext("--context", name, "E")
	must.OK(t, err)
	_, err = places.Enter(t, p, true, want)
	return err
}

func TestOpenUsesAContextOfTheNATSCommand(t *testing.T) {
	inContexts(t, "prod", `{"url": "nats://`+withAccounts(t)+`", "user": "all", "password": "s3cret"}`)
	must.OK(t, openContext(t, "prod", ""))
}

func TestOpenListsTheContexts(t *testing.T) {
	inContexts(t, "prod", `{"url": "nats://user:s3cret@%zz"}`)
	for _, c := range []struct{ name, err, hint string }{
		{"test", `--context test: unknown context "test"`, "known contexts: prod"},
		{"prod", "--context prod: cannot connect: the context's URL is not valid", "check the host"},
	} {
		err := openContext(t, c.name, c.err)
		var f *fault.Error
		if !errors.As(err, &f) || f.Error() != c.err || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("got %v", err)
		}
	}
}
