//go:build integration

package etcd

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// seen collects what a watch pushes.
type seen struct {
	mu  sync.Mutex
	all []driver.Entry
}

func watch(t *testing.T, s driver.Store) *seen {
	t.Helper()
	var w seen
	stop, err := driver.AbilitiesOf(s).Watcher.Watch(wait.Context(t), key, func(e driver.Entry) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, e)
	})
	rig.Must(t, err)
	t.Cleanup(stop)
	return &w
}

// await waits for a push behind the first n, and returns how many there are by then.
func (w *seen) await(t *testing.T, n int, what string, is func(driver.Entry) bool) (count int) {
	t.Helper()
	wait.Until(t, what, func() bool { return w.has(n, is) })
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// has reports whether there is such a push behind the first n.
func (w *seen) has(n int, is func(driver.Entry) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.all[n:], is)
}

func holds(value string) func(driver.Entry) bool {
	return func(e driver.Entry) bool { return string(e.Value) == value }
}

func reads(e driver.Entry) bool { return e.Unverified && e.Lost == nil }

// TestWatchAfterARestore: revisions begin again below those that the watch has seen. It makes the
// election read, and then pushes the changes of the new history. A watch that resumed behind its
// last event would hear nothing until the revision has caught up.
func TestWatchAfterARestore(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.write(p.store, "kept")
	snapshot := etcdd.Snapshot(t, p.Cluster)
	w := watch(t, p.store)
	for range 20 {
		p.write(p.store, "lost")
	}
	n := w.await(t, 0, "the lost writes", holds("lost"))
	p.restored(snapshot, etcdd.Token)
	n = w.await(t, n, "a push that makes the election read", reads)
	p.write(p.Direct(t), "present")
	w.await(t, n-1, "a write of the new history", holds("present"))
}

// TestCompactedWatch: what changed while the connection was lost is compacted. The election reads.
func TestCompactedWatch(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.write(p.store, "first")
	store, way := p.Open(t, 0)
	w := watch(t, store)
	p.write(p.store, "pushed")
	n := w.await(t, 0, "a write", holds("pushed"))
	restore := way.(relay.Set).Cut(false)
	n = w.await(t, n-1, "that no changes are pushed", func(e driver.Entry) bool { return e.Lost != nil })
	for range 5 {
		p.write(p.store, "missed")
	}
	_, err := etcdd.Operator(t, p.Cluster).Compact(wait.Context(t), int64(p.read(p.store).Floor))
	rig.Must(t, err)
	restore()
	n = w.await(t, n, "a push that makes the election read", reads)
	// A write before the stream is replaced once more only makes the election read again.
	wait.Until(t, "a write is pushed", func() bool { p.write(p.store, "last"); return w.has(n-1, holds("last")) })
}

// TestSilentWatch: nothing comes from the server, and the connection stays open. The election
// learns of it, though it does not read by itself, and the client library sends no pings.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.write(p.store, "first")
	r, err := relay.New(p.Servers[0].URL())
	rig.Must(t, err)
	t.Cleanup(r.Close)
	config := etcdd.Config(strings.TrimPrefix(r.URL(), "nats://"))
	config.DialKeepAliveTime = time.Hour
	w := watch(t, etcdd.OpenAt(t, config, p.Prefix))
	r.Mute()
	n := w.await(t, 0, "that no changes are pushed", func(e driver.Entry) bool { return e.Lost != nil })
	r.Heal()
	w.await(t, n-1, "a push that makes the election read", reads)
}
