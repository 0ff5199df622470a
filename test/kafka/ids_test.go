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

// TestTopicWithoutID: records carry the topic's id. A client that is too old to be told it would
// write records that others skip, and skip theirs: each would lead an election of its own in the
// same partition. It is refused.
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

// TestBrokersWithoutIDs: nor do brokers make elections that have none, which would be lost when
// they are upgraded.
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
