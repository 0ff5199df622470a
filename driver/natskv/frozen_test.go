//go:build integration

package natskv

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestFrozenServer: a stopped server still accepts connections, in its kernel. The client library
// then holds its lock until its own timeout, which is too late for every test here. Each call must
// end with its context.
//
// This test cannot run in a bubble, where time stands still while a goroutine waits for a lock.
func TestFrozenServer(t *testing.T) {
	for name, reach := range map[string]func(testing.TB, *nats.Conn, string) driver.Store{
		"store": opened, "handle": handled, "legacy handle": handledLegacy,
	} {
		t.Run(name, func(t *testing.T) { frozenServer(t, reach) })
	}
}

func frozenServer(t *testing.T, reach func(testing.TB, *nats.Conn, string) driver.Store) {
	server := startServer(t)
	kv := addBucket(t, newJetStream(t, connect(t, server.ClientURL())))
	p := natstest.StartProxy(t, server.ClientURL())
	nc := connect(t, p.URL(), nats.Timeout(time.Hour))
	s := reach(t, nc, kv.Bucket())
	before := runtime.NumGoroutine()
	heal := p.Cut()
	p.Drop() // so that the library connects again and waits for the server's greeting
	wait.Until(t, "the library is at it", func() bool { return p.Connections() > 0 })
	for what, call := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error {
			_, err := s.Read(ctx, testKey)
			return err
		},
		"swap": func(ctx context.Context) error {
			_, err := s.CompareAndSwap(ctx, testKey, "1", []byte("v"))
			return err
		},
		"watch": func(ctx context.Context) error {
			_, err := s.(driver.Watcher).Watch(ctx, testKey, func(driver.Entry) {})
			return err
		},
		"inspect": func(ctx context.Context) error {
			_, err := s.(driver.Inspector).Inspect(ctx, time.Second)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); outcomeOf(err) != open {
			t.Errorf("%s: %v; want an error that leaves it open", what, err)
		}
		cancel()
	}
	heal()
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
	wait.Until(t, "what was abandoned has ended", func() bool { return runtime.NumGoroutine() <= before+4 })
}
