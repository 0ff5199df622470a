package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (c *cluster) produceForeign(n int) {
	c.tb.Helper()
	client := c.client(kgo.DefaultProduceTopic(topic))
	for i := range n {
		if err := client.ProduceSync(within(c.tb), &kgo.Record{Key: fmt.Append(nil, i), Value: []byte("an order")}).FirstErr(); err != nil {
			c.tb.Fatal(err)
		}
	}
}

// TestForeignTopicIsRefused: a topic with other data is refused, with any settings.
func TestForeignTopicIsRefused(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		_ = c.open(c.direct()).Close() // this creates it
		c.produceForeign(3)
		s, err := kafkalog.Open(within(t), c.direct(), topic)
		if err == nil {
			_ = s.Close()
			t.Fatal("it is opened")
		}
		if !strings.Contains(err.Error(), "3 records and none of an election") {
			t.Errorf("the error says %v", err)
		}
	})
}

// TestForeignRecordsAreReported: readers from before and later readers report them. Records of
// elections count as before.
func TestForeignRecordsAreReported(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		old := c.open(c.direct())
		v := create(t, old, "key", "first")
		if found, err := old.Inspect(within(t), 15*time.Second); err != nil || len(found) != 1 {
			t.Fatalf("before: %v (%v); want that there is one replica, and no more", found, err)
		}
		c.produceForeign(100)
		for name, s := range map[string]*kafkalog.Store{"old": old, "new": c.open(c.direct())} {
			if e := read(t, s, "key"); e.Version != v {
				t.Errorf("the %s reader sees %s", name, e.Value)
			}
			found, err := s.Inspect(within(t), 15*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			last := found[len(found)-1]
			if last.Severity != driver.Warning || last.Setting != "records" || !strings.Contains(last.Problem, "100 of the 101 records") {
				t.Errorf("the %s reader finds %v", name, found)
			}
		}
		swap(t, old, "key", v, "second")
	})
}
