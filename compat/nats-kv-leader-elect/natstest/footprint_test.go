//go:build integration

package natstest

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
	"github.com/tenure-go/tenure/driver/natskv"
)

// TestFootprint measures the memory of a waiting candidate in this process, over a handle and over
// a shared store. It includes the server where a case says so.
func TestFootprint(t *testing.T) {
	if testing.Short() {
		t.Skip("short, and perhaps under the race detector, which takes memory of its own")
	}
	for _, c := range []struct {
		over       string
		bytes      int
		goroutines float64
	}{{"a shared store", 40_000, 2}, {"the handle", 400_000, 10}} {
		t.Run(c.over, func(t *testing.T) {
			onServer(t, func(w *world) {
				kv := w.bucket(ttl)
				store, err := natskv.Open(w.Context(), w.modern(), kv.Bucket())
				w.must(err)
				defer store.Close()
				fill := func(name string, n int, opts ...election.Option) {
					for i := range n {
						e, err := election.NewElection(name, fmt.Sprint("e", i), kv, append([]election.Option{election.WithoutSplay()}, opts...)...)
						w.must(err)
						draft(w, name).begin(e)
					}
					time.Sleep(3 * lease)
				}
				const many = 60
				fill("leader", many, election.WithStore(store))
				var opts []election.Option
				if c.over == "a shared store" {
					opts = append(opts, election.WithStore(store))
				}
				goroutines, bytes := runtime.NumGoroutine(), heap()
				fill("waiting", many, opts...)
				bytes, goroutines = (heap()-bytes)/many, runtime.NumGoroutine()-goroutines
				w.Logf("%d bytes and %.2f goroutines each", bytes, float64(goroutines)/many)
				if bytes > c.bytes || float64(goroutines)/many > c.goroutines {
					w.Error("takes up more than it did")
				}
			})
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse) //nolint:gosec // far from the limit
}
