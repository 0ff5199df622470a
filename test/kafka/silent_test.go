package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kfake"
)

// relays are one for each broker.
func (c *cluster) relays() []*relay.Relay {
	c.tb.Helper()
	var all []*relay.Relay
	for _, address := range c.ListenAddrs() {
		r, err := relay.New("tcp://" + address)
		if err != nil {
			c.tb.Fatal(err)
		}
		c.tb.Cleanup(r.Close)
		all = append(all, r)
	}
	return all
}

// TestSilentBroker: the partition's leader goes silent and another takes over. Callers whose patience is shorter than the
// store's find the new leader, long before the connections to the old one time out, which is after 3 s for a write and 8 s for a read.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.NumBrokers(3))
	relays := c.relays()
	s := c.open(c.through(relays))
	v := create(t, s, "key", "first")
	leader := c.LeaderFor(topic, 0)
	relays[leader].Blackhole()
	if err := c.MoveTopicPartition(topic, 0, (leader+1)%3); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c.insist(s, "key", v, 600*time.Millisecond)
	took := time.Since(began)
	t.Logf("it takes %v", took)
	if took > 5*time.Second {
		t.Error("that is too long")
	}
}

// TestSilentBeforeThePartitionMoves: for some seconds the silent broker is still the leader by everybody's word. Then it is not, and the
// writes go on at once: a store that has much time for a broker does not spend it on this one.
func TestSilentBeforeThePartitionMoves(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.NumBrokers(3))
	relays := c.relays()
	s := c.open(c.through(relays), kafkalog.WithTimeout(16*time.Second))
	v := create(t, s, "key", "first")
	c.vouch()
	leader := c.LeaderFor(topic, 0)
	relays[leader].Blackhole()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.CompareAndSwap(short, "key", v, []byte("lost")); outcome(err) != "unknown" {
		t.Errorf("a write to the silent one: %v", err)
	}
	moved := make(chan time.Time, 1)
	go func() {
		pause(context.Background(), 1500*time.Millisecond)
		_ = c.MoveTopicPartition(topic, 0, (leader+1)%3)
		moved <- time.Now()
	}()
	c.insist(s, "key", v, 15*time.Second) // nobody gives up meanwhile
	late := time.Since(<-moved)
	t.Logf("it takes %v", late)
	if late > 3*time.Second {
		t.Error("that is too long")
	}
}

// TestOpenBesideSilentBrokers: two of three seeds accept connections and say nothing. The third is found soon, by a store that has much
// time for a broker.
func TestOpenBesideSilentBrokers(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.NumBrokers(3))
	_ = c.open(c.direct()).Close() // which creates the topic
	relays := c.relays()
	for i, r := range relays {
		if int32(i) != c.LeaderFor(topic, 0) {
			r.Blackhole()
		}
	}
	for range 3 { // since the order in which brokers are asked is drawn
		began := time.Now()
		read(t, c.open(c.through(relays), kafkalog.WithTimeout(16*time.Second)), "key")
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it takes %v", took)
		}
	}
}
