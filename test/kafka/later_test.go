package kafka

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestLaterRelease: a topic with records in a future format is refused, even if it also has records
// of this release. Otherwise each release would elect its own leader by its own records.
func TestLaterRelease(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		create(t, s, "key", "first")
		header := string(c.records()[0].Headers[0].Value)
		later := &kgo.Record{Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "tenure", Value: []byte("2" + header[1:])}}}
		client := c.client(kgo.DefaultProduceTopic(topic))
		if err := client.ProduceSync(within(t), later).FirstErr(); err != nil {
			t.Fatal(err)
		}
		old, err := kafkalog.Open(within(t), c.direct(), topic)
		if err == nil {
			_ = old.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "later release") {
			t.Errorf("a topic that a later release writes to: %v", err)
		}
	})
}
