package natskv

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

// TestFrozenServer: a server that is stopped still accepts connections, in its kernel. The library then holds its lock
// until its own timeout.
func TestFrozenServer(t *testing.T) {
	server := startProcess(t)
	operator := connect(t, server.url())
	js := newJetStream(t, operator)
	kv := addBucket(t, js)
	p := startProxy(t, server.url())
	nc := connect(t, p.url(), nats.Timeout(3*time.Second))
	for name, s := range map[string]driver.Store{
		"store":         openStore(t, newJetStream(t, nc), kv.Bucket()),
		"handle":        handled(t, nc, kv.Bucket()),
		"legacy handle": handledLegacy(t, nc, kv.Bucket()),
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			heal := p.cut()
			p.drop() // so that the library connects again and waits for the server's first word
			eventually(t, "the library is at it", func() bool { return p.accepted() > 0 })
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
				start := time.Now()
				if err := call(ctx); outcomeOf(err) != open {
					t.Errorf("%s: %v; want an error that leaves it open", what, err)
				}
				if d := time.Since(start); d > patience/4 {
					t.Errorf("%s took %v; its context ended after 50 ms", what, d)
				}
				cancel()
			}
			heal()
			eventually(t, "the store is reached again", func() bool { return readable(s) })
			eventually(t, "what was abandoned has ended", func() bool { return runtime.NumGoroutine() <= before+4 })
		})
	}
}
