//go:build integration

package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// TestHostOfWatchIsFrozen: a watch receives changes again while the server that hosts it is still
// frozen. A consumer on the same server that no heartbeat watches receives nothing. That proves
// that the frozen server hosted the watch.
func TestHostOfWatchIsFrozen(t *testing.T) {
	soak(t)
	a := newArena(t)
	victim := a.Others(a.leader())[0]
	careless := a.hosted(victim, a.listen)
	store := a.open(0)
	var pushed atomic.Pointer[driver.Entry]
	a.hosted(victim, func() (*atomic.Int64, func()) {
		stop, err := store.Watch(a.context(), "key", func(e driver.Entry) { pushed.Store(&e) })
		a.must(err)
		return nil, stop
	})
	writer := a.openOver(a.dial(a.Others(victim)[0].URL()))
	before := careless.Load()
	a.must(victim.Pause())
	began := time.Now()
	a.eventually("the watch receives a write", func(ctx context.Context) error {
		e, err := writer.Read(ctx, "key")
		if err != nil {
			return err
		}
		v, err := writer.CompareAndSwap(ctx, "key", e.Version, fmt.Append(nil, time.Since(began)))
		if err != nil {
			return err
		}
		if !wait.Within(100*time.Millisecond, func() bool { got := pushed.Load(); return got != nil && got.Version == v }) {
			return errors.New("it is not pushed")
		}
		return nil
	})
	t.Logf("the watch receives pushes again after %v", time.Since(began))
	if n := careless.Load() - before; n != 0 {
		t.Errorf("a consumer on the frozen server has delivered %d writes: it is hosted elsewhere", n)
	}
}

// hosted creates consumers until one is on that server, and ends the others.
func (a *arena) hosted(by *natsd.Server, make func() (received *atomic.Int64, stop func())) *atomic.Int64 {
	a.tb.Helper()
	for range 50 {
		before := a.hosts()
		received, stop := make()
		var fresh []*natsd.Server
		for name, host := range a.hosts() {
			if _, old := before[name]; !old {
				fresh = append(fresh, host)
			}
		}
		if slices.Contains(fresh, by) {
			a.tb.Cleanup(stop)
			return received
		}
		stop()
	}
	a.tb.Fatalf("no consumer is on %s", by.Name())
	return nil
}

func (a *arena) hosts() map[string]*natsd.Server {
	a.tb.Helper()
	hosts, err := a.Hosts(a.context(), a.stream())
	a.must(err)
	return maps.Clone(hosts)
}

// listen creates a consumer without a watch of its heartbeats.
func (a *arena) listen() (*atomic.Int64, func()) {
	a.tb.Helper()
	var received atomic.Int64
	nc := a.connect(0).Conn()
	inbox := nc.NewInbox()
	sub, err := nc.Subscribe(inbox, func(*nats.Msg) { received.Add(1) })
	a.must(err)
	request, err := json.Marshal(map[string]any{
		"stream_name": a.stream(),
		"config":      map[string]any{"deliver_subject": inbox, "deliver_policy": "new", "mem_storage": true, "num_replicas": 1},
	})
	a.must(err)
	answer, err := nc.Request("$JS.API.CONSUMER.CREATE."+a.stream(), request, 5*time.Second)
	a.must(err)
	var got struct{ Error *struct{ Description string } }
	a.must(json.Unmarshal(answer.Data, &got))
	if got.Error != nil {
		a.tb.Fatal(got.Error.Description)
	}
	return &received, func() { _ = sub.Unsubscribe() }
}
