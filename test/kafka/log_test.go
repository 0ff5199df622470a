package kafka

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// records returns all records of the log, as any consumer gets them.
func (c *cluster) records() []*kgo.Record {
	c.tb.Helper()
	end := c.PartitionInfo(topic, 0).HighWatermark
	client := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	var all []*kgo.Record
	for len(all) == 0 || all[len(all)-1].Offset < end-1 {
		fetched := client.PollFetches(within(c.tb))
		if err := fetched.Err(); err != nil {
			c.tb.Fatal(err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}

// TestReplayedWritesChangeNothing delivers every record of a log once more, in every order of two.
func TestReplayedWritesChangeNothing(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "0")
		for i := range 4 {
			v = swap(t, s, "key", v, fmt.Sprint(i+1))
		}
		want := read(t, s, "key")
		client := c.client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for _, r := range c.records() {
			again := &kgo.Record{Value: r.Value, Headers: r.Headers}
			if err := client.ProduceSync(within(t), again, &kgo.Record{Value: r.Value, Headers: r.Headers}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		for name, s := range map[string]*kafkalog.Store{"the old reader": s, "a new reader": c.open(c.direct())} {
			if e := read(t, s, "key"); e.Version != want.Version || !bytes.Equal(e.Value, want.Value) {
				t.Errorf("%s sees %s in version %s", name, e.Value, e.Version)
			}
		}
		swap(t, s, "key", v, "5")
	})
}

// TestRecordsAreReadable: the value is the unchanged record of the election. Everything else is in
// one header. There is no key, so that compaction cannot remove records.
func TestRecordsAreReadable(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		create(t, s, "a key", `{"leaderID":"a"}`)
		r := c.records()[0]
		if string(r.Value) != `{"leaderID":"a"}` || len(r.Key) != 0 || len(r.Headers) != 1 || r.Headers[0].Key != "tenure" {
			t.Fatalf("the record is %+v", r)
		}
		fields := strings.SplitN(string(r.Headers[0].Value), " ", 7)
		if len(fields) != 7 || fields[0] != "1" || fields[5] != "-" || fields[6] != "a key" {
			t.Errorf("the header is %s", r.Headers[0].Value)
		}
	})
}

// ample is for stores that write a lot at once.
var ample = kafkalog.WithTimeout(time.Minute)

// fill writes this many records under its own keys.
func fill(t testing.TB, s driver.Store, records int, value []byte) {
	t.Helper()
	const writers = 256
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			key, v := fresh("filler"), driver.Version("")
			for range records / writers {
				next, err := s.CompareAndSwap(within(t), key, v, value)
				if err != nil {
					t.Errorf("fill: %v", err)
					return
				}
				v = next
			}
		})
	}
	all.Wait()
}
