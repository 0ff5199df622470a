//go:build integration

package kafka

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFreshReaderBeginsNearTheEnd counts the records that a store reads when it opens a long log.
func TestFreshReaderBeginsNearTheEnd(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct(), ample)
		v := create(t, s, "key", "x")
		const others = 10_240
		fill(t, s, others, []byte("x"))
		renewFillers(t, s, c)
		v = swap(t, s, "key", v, "y")
		v = swap(t, s, "key", v, "z") // it shows that nothing older is in force
		var first int64 = -1
		fetches := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
			at := r.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset
			if first < 0 || at < first {
				first = at
			}
			return true
		}})
		if e := read(t, c.open(c.direct(), ample), "key"); e.Version != v {
			t.Errorf("the new reader sees %s", e.Value)
		}
		fetches.Remove()
		if end := c.PartitionInfo(topic, 0).HighWatermark; first < end-2*4096-300 {
			t.Errorf("of %d records the new reader began at %d", end, first)
		}
	})
}

// renewFillers writes every cell again, so that its last record is near the end, as in live
// elections.
func renewFillers(t testing.TB, s driver.Store, c *cluster) {
	t.Helper()
	keys := map[string]bool{}
	for _, r := range c.records() {
		keys[strings.SplitN(string(r.Headers[0].Value), " ", 7)[6]] = true
	}
	delete(keys, "key")
	var all sync.WaitGroup
	for key := range keys {
		all.Go(func() {
			e, err := s.Read(within(t), key)
			if err == nil {
				_, err = s.CompareAndSwap(within(t), key, e.Version, []byte("z"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestHeadOfTheLogIsRemoved(t *testing.T) {
	inBubble(t, 1, func(_ *testing.T, c *cluster) { headOfTheLogIsRemoved(&c.site, 9216) })
}

// headOfTheLogIsRemoved: an operator, or retention, has removed the records of an idle election.
// Then the key is absent, for new and old readers. Its old versions no longer fit. Its terms
// continue above the old ones.
func headOfTheLogIsRemoved(s *site, others int) {
	t := s.tb
	old := s.open(s.direct(), ample)
	v := create(t, old, "idle", "released")
	live := create(t, old, "live", "0")
	fill(t, old, others, []byte("x"))
	live = swap(t, old, "live", live, "1")
	s.removeUpTo(int64(others / 2))
	fill(t, old, 256, []byte("x")) // this notifies the old reader
	for name, reader := range map[string]*kafkalog.Store{"old": old, "new": s.open(s.direct(), ample)} {
		if e := read(t, reader, "live"); e.Version != live {
			t.Errorf("the %s reader: the live cell holds %q", name, e.Value)
		}
		if e := read(t, reader, "idle"); !e.Absent() || e.Pristine || e.Floor < uint64(others) {
			t.Errorf("the %s reader: the idle cell is %+v", name, e)
		}
		if _, err := reader.CompareAndSwap(within(t), "idle", v, []byte("x")); outcome(err) != "conflict" {
			t.Errorf("the %s reader: a swap from the old version: %v", name, err)
		}
	}
	term := s.leads(old, "idle", tenure.Config{ID: "a", Lease: 3 * time.Second})
	if term.Token() < uint64(others) {
		t.Errorf("token %d", term.Token())
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	c := start(t)
	logIsBounded(&c.site, 4, c.ApplyRetention)
}

// logIsBounded writes far more than the log may hold, to a topic that Open has created, on brokers
// that clean up. The bounds are the lowest that Open accepts.
func logIsBounded(s *site, rounds int, cleanUp func()) {
	const retention, segment = 16 << 20, 2 << 20
	t, store := s.tb, s.open(s.direct(), ample)
	s.alter("retention.bytes", fmt.Sprint(retention))
	s.alter("segment.bytes", fmt.Sprint(segment))
	v := create(t, store, "live", "0")
	value := bytes.Repeat([]byte("x"), driver.MaxValue)
	for i := range rounds {
		fill(t, store, 2048, value)
		v = swap(t, store, "live", v, fmt.Sprint(i))
		cleanUp()
	}
	var kept int64
	eventually(t, "the log is short again", func() bool {
		begin, end := s.bound((*kadm.Client).ListStartOffsets), s.bound((*kadm.Client).ListEndOffsets)
		kept = (end - begin) * driver.MaxValue
		return begin > 0 && kept <= retention+2*segment
	})
	t.Logf("%d MB are kept", kept>>20)
	if kept < retention*3/4 {
		t.Error("that is too little")
	}
	if e := read(t, s.open(s.direct(), ample), "live"); e.Version != v {
		t.Errorf("a new reader sees %q", e.Value)
	}
}

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
