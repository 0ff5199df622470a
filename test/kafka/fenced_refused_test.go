package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFencedLeaderStopsRequestingAnEpoch: the coordinator answers each request for an epoch that
// the leader is fenced. The leader requests it three more times, and then stops, although it still
// leads.
func TestFencedLeaderStopsRequestingAnEpoch(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		c.scene("written").makeTopic(1)
		e, err := tenure.New(memory.New(), "billing", tenure.Config{ID: "a", Lease: 10 * time.Second, Clock: c.clock()})
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(within(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = term.Resign(within(t)) }()
		p, err := fenced.Open(within(t), term, c.direct(kgo.DefaultProduceTopic("written")))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge, Count: 1})
		if err := p.Produce(within(t), kgo.StringRecord("x")); !errors.Is(err, kerr.MessageTooLarge) {
			t.Fatal(err)
		}
		asked := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ProducerFenced, Count: -1})
		err = p.Produce(within(t), kgo.StringRecord("x"))
		if !errors.Is(err, fenced.ErrFenced) || asked.Hits() > 20 {
			t.Errorf("after %d requests: %v", asked.Hits(), err)
		}
	})
}
