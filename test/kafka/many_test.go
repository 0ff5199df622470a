//go:build integration

package kafka

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// TestManyKeys: ten thousand cells and watches need one log, one goroutine and little memory.
func TestManyKeys(t *testing.T) {
	keys := 10_000
	if testing.Short() {
		keys = 1000
	}
	c := start(t)
	s := c.open(c.direct(), ample)
	value := bytes.Repeat([]byte("r"), 320)
	goroutines, before := runtime.NumGoroutine(), heap()
	var seen sync.WaitGroup
	seen.Add(keys)
	var once sync.Map
	for i := range keys {
		key := fmt.Sprint("election ", i)
		stop, err := s.Watch(t.Context(), key, func(e driver.Entry) {
			if _, again := once.LoadOrStore(key, true); !again {
				seen.Done()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	began := time.Now()
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			if _, err := s.CompareAndSwap(within(t), fmt.Sprint("election ", i), "", value); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen.Wait()
	t.Logf("%d keys: %v for a write to each at once; %d bytes of heap a key, the broker's included", keys, time.Since(began),
		(heap()-before)/uint64(keys))
	eventually(t, "few goroutines more than before", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
	if c.PartitionInfo(topic, 0).HighWatermark < int64(keys) {
		t.Error("not all was written")
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
