package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestTopicWithoutID: records have the topic's ID. A client that is too old to get it would write
// records that others skip, and skip theirs. Then each would lead its own election in the same
// partition. The client is refused.
func TestTopicWithoutID(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		e, err := tenure.New(s, "billing", tenure.Config{ID: "a", Lease: time.Second, Clock: c.clock()})
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(within(t))
		if err != nil {
			t.Fatal(err)
		}
		old, err := kafkalog.Open(within(t), c.direct(kgo.MaxVersions(kversion.V2_7_0())), topic)
		if err == nil {
			_ = old.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "Kafka 2.8") {
			t.Errorf("a client without ids of topics beside a leader with token %d: %v", term.Token(), err)
		}
		_ = term.Resign(within(t))
	})
}

// TestBrokersWithoutIDs: brokers without topic IDs are refused, too, because their elections would
// be lost at an upgrade.
func TestBrokersWithoutIDs(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		began := time.Now()
		s, err := kafkalog.Open(within(t), c.direct(), topic)
		if err == nil {
			_ = s.Close()
		}
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "Kafka 2.8") || took > patience/2 {
			t.Errorf("after %v: %v", took, err)
		}
	}, kfake.MaxVersions(kversion.V2_7_0()))
}
