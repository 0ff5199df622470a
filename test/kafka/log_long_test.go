//go:build integration

package kafka

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
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

// TestHeadOfTheLogIsRemoved: an operator, or retention, has removed the records of an idle
// election. Then the key is absent, for new and old readers. Its old versions no longer fit. Its
// terms continue above the old ones.
func TestHeadOfTheLogIsRemoved(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		old := c.open(c.direct(), ample)
		v := create(t, old, "idle", "released")
		live := create(t, old, "live", "0")
		const others = 9216
		fill(t, old, others, []byte("x"))
		live = swap(t, old, "live", live, "1")
		if err := c.DeleteRecords(topic, 0, others/2); err != nil {
			t.Fatal(err)
		}
		fill(t, old, 256, []byte("x")) // this notifies the old reader
		for name, s := range map[string]*kafkalog.Store{"old": old, "new": c.open(c.direct(), ample)} {
			if e := read(t, s, "live"); e.Version != live {
				t.Errorf("%s reader: the live cell holds %q", name, e.Value)
			}
			if e := read(t, s, "idle"); !e.Absent() || e.Pristine || e.Floor < others {
				t.Errorf("%s reader: the idle cell is %+v", name, e)
			}
			if _, err := s.CompareAndSwap(within(t), "idle", v, []byte("x")); outcome(err) != "conflict" {
				t.Errorf("%s reader: a swap from the old version: %v", name, err)
			}
		}
		e, err := tenure.New(old, "idle", tenure.Config{ID: "a", Lease: time.Second, Clock: c.clock()})
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if term.Token() < others {
			t.Errorf("token %d", term.Token())
		}
		_ = term.Resign(within(t))
	})
}

// TestLogIsBounded writes far more than the log may hold, to a topic that Open has created, with a
// broker that cleans up. The bounds are the lowest that Open accepts.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	const retention, segment = 16 << 20, 2 << 20
	c := start(t)
	s := c.open(c.direct(), ample)
	c.alter("retention.bytes", fmt.Sprint(retention))
	c.alter("segment.bytes", fmt.Sprint(segment))
	v := create(t, s, "live", "0")
	value := bytes.Repeat([]byte("x"), driver.MaxValue)
	for i := range 4 {
		fill(t, s, 2048, value)
		v = swap(t, s, "live", v, fmt.Sprint(i))
		c.ApplyRetention()
	}
	info := c.PartitionInfo(topic, 0)
	if info.LogStartOffset == 0 {
		t.Fatal("nothing was removed")
	}
	kept := (info.HighWatermark - info.LogStartOffset) * driver.MaxValue
	if kept > retention+2*segment || kept < retention*3/4 {
		t.Errorf("%d MB are kept", kept>>20)
	}
	if e := read(t, c.open(c.direct(), ample), "live"); e.Version != v {
		t.Errorf("a new reader sees %q", e.Value)
	}
}
