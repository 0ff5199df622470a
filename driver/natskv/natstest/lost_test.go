//go:build integration

package natstest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestOfflineSendsNothing: the client library keeps publishes while there is no connection and
// sends them later.
func TestOfflineSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := natsnet.Connect(t, f.server.ClientURL())
	store := openStore(t, natsnet.JetStream(t, nc), f.kv.Bucket())
	restart(t, f.server, func() {
		wait.Until(t, "the connection is lost", func() bool { return !nc.IsConnected() })
		_, err := store.CompareAndSwap(wait.Context(t), testKey, "unwritten 0", []byte("late"))
		if !errors.Is(err, connection.ErrOffline) {
			t.Errorf("a swap without a connection: %v; want an error that there is none", err)
		}
	})
	wait.Until(t, "the server is back", func() bool { return readable(store) })
	f.must(nc.Flush())
	if e := f.read(store, testKey); !e.Absent() {
		t.Errorf("a swap made without a connection was sent later: %+v", e)
	}
}

// A message is lost on its way, and then a message of another key arrives. The consumer must
// notice the gap, and its successor must deliver the lost message.
func TestLostMessageIsDeliveredLater(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int // messages in the bucket when the watch begins
		after  int // messages delivered before one is lost
		opts   []natskv.Option
		why    string
	}{
		{"empty", 0, 1, nil, "the first link has no sequence to begin after, but it has delivered a message"},
		{"used", 1, 0, nil, "the first link begins after the last message of the bucket"},
		{"created", 0, 0, []natskv.Option{natskv.Create()}, "the bucket does not count from 1: even an empty one has a sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			if c.opts != nil {
				name := newBucketName()
				openStore(t, f.js, name, c.opts...)
				kv, err := f.js.KeyValue(wait.Context(t), name)
				f.must(err)
				f.kv = kv
			}
			for range c.before {
				f.put("earlier", "0")
			}
			proxy := natsnet.StartProxy(t, f.server.ClientURL())
			store := openStore(t, natsnet.JetStream(t, natsnet.Connect(t, proxy.URL())), f.kv.Bucket())
			got := make(chan string, 9)
			for _, key := range []string{testKey, "first", "later"} {
				see := func(e driver.Entry) { got <- key + "=" + string(e.Value) }
				if _, err := store.Watch(wait.Context(t), key, see); err != nil {
					t.Fatal(err)
				}
			}
			for range c.after {
				f.put("first", "1")
				if pushed := <-got; pushed != "first=1" {
					t.Fatalf("pushed %s", pushed)
				}
			}
			lost := proxy.Lose("$KV." + f.kv.Bucket() + "." + testKey)
			f.put(testKey, "2")
			<-lost
			f.put("later", "3")
			for {
				select {
				case pushed := <-got:
					if pushed == testKey+"=2" {
						return
					}
				case <-wait.Context(t).Done():
					t.Fatalf("the lost message is never delivered: %s", c.why)
				}
			}
		})
	}
}

// TestFrozenServer: a stopped server still accepts connections, in its kernel. The client library
// then holds its lock until its own timeout, which is too late for every test here. Each call must
// end with its context.
//
// This test cannot run in a bubble, where time stands still while a goroutine waits for a lock.
func TestFrozenServer(t *testing.T) {
	for name, reach := range map[string]reaching{
		"store": opened, "handle": handled, "legacy handle": handledLegacy,
	} {
		t.Run(name, func(t *testing.T) { frozenServer(t, reach) })
	}
}

func frozenServer(t *testing.T, reach reaching) {
	server := StartServer(t)
	kv := addBucket(t, natsnet.JetStream(t, natsnet.Connect(t, server.ClientURL())))
	p := natsnet.StartProxy(t, server.ClientURL())
	nc := natsnet.Connect(t, p.URL(), nats.Timeout(time.Hour))
	s := reach(t, nc, kv.Bucket())
	before := runtime.NumGoroutine()
	heal := p.Cut()
	p.Drop() // so that the library connects again and waits for the server's greeting
	wait.Until(t, "the library is at it", func() bool { return p.Connections() > 0 })
	for what, call := range map[string]func(context.Context) error{
		"read":    func(ctx context.Context) error { return failure(s.Read(ctx, testKey)) },
		"swap":    func(ctx context.Context) error { return failure(s.CompareAndSwap(ctx, testKey, "1", []byte("v"))) },
		"watch":   func(ctx context.Context) error { return failure(s.Watch(ctx, testKey, func(driver.Entry) {})) },
		"inspect": func(ctx context.Context) error { return failure(s.Inspect(ctx, time.Second)) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); !leftOpen(err) {
			t.Errorf("%s: %v; want an error that leaves it open", what, err)
		}
		cancel()
	}
	heal()
	wait.Until(t, "the store is reached again", func() bool { return readable(s) })
	wait.Until(t, "what was abandoned has ended", func() bool { return runtime.NumGoroutine() <= before+4 })
}
