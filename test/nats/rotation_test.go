//go:build integration

package nats

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// TestRotation: the password in a context of the nats command is replaced, and the server's
// configuration is loaded again. The server then ends the connections of users whose password has
// changed.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "server.conf")
	configure := func(secret string) *server.Options {
		text := fmt.Sprintf(`listen: "127.0.0.1:-1", jetstream: {store_dir: %q}, accounts: {A: {jetstream: enabled, users: [
			{user: admin, password: admin}, {user: member, password: %q}]}}`, filepath.Join(dir, "data"), secret)
		must(t, os.WriteFile(config, []byte(text), 0o600))
		o, err := server.ProcessConfigFile(config)
		must(t, err)
		o.NoLog, o.NoSigs = true, true
		return o
	}
	s, err := server.NewServer(configure("one"))
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	wait.Until(t, "the server starts", func() bool { return s.ReadyForConnections(time.Second) })

	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("admin", "admin"))
	must(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	must(t, err)
	store, err := natskv.Open(t.Context(), js, "ELECTIONS", natskv.Create())
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })

	home := filepath.Join(dir, "nats", "context")
	must(t, os.MkdirAll(home, 0o700))
	file, hand := rotation.File(t, "prod.json", fmt.Sprintf(`{"url": %q, "user": "member", "password": "SECRET"}`, s.ClientURL()))
	must(t, os.Symlink(file, filepath.Join(home, "prod.json")))
	(&rotation.Play{
		Args:    []string{"--context", "prod/ELECTIONS"},
		Env:     []string{"XDG_CONFIG_HOME=" + dir},
		Store:   store,
		Accept:  func(secret string) { must(t, s.ReloadOptions(configure(secret))) },
		Hand:    hand,
		Refusal: "the server refuses the credentials",
	}).Run(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
