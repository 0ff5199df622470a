package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kgo"
)

// cutCoordinator cuts the leader off from the coordinator of its group, and from nothing else.
func cutCoordinator(x strike) strike {
	x.name, x.modes, x.relayed, x.lease = "coordinator", []mode{grouped}, true, time.Second
	x.title = "the leader is cut off from the coordinator of the group that nominated it, for two and a " +
		"half sessions, and from nothing else; lost and held bytes as in row cut"
	x.note = "The coordinator never leads the log's partition. The control has no election: of three " +
		"consumers of franz-go, the one leads to which the group last gave partition 0, until it is told " +
		"otherwise"
	x.hold = func(c *crew) time.Duration { return 5 * c.role.Session / 2 }
	x.hit = func(c *crew, leader *member, round int) func() {
		k := kafkaOf(c)
		coordinator := k.seeds[k.coordinator(c.ctx, c.role.Elections[0])]
		return relay.Set{coordinator: leader.relays[coordinator]}.Cut(round%2 == 0)
	}
	x.begin = func(c *crew) {
		apart(c)
		c.enthrone()
	}
	x.control, x.beginControl = "consumers that go by the group alone", consumers
	return x
}

func kafkaOf(c *crew) *brokers {
	if k, ok := c.servers.(realBrokers); ok {
		return k.brokers
	}
	return c.servers.(*brokers)
}

// apart renames the election until the coordinator of the group of that name does not lead the log.
func apart(c *crew) {
	k := kafkaOf(c)
	log := k.leader(c.ctx, c.role.Bucket)
	for range 100 {
		c.role.Elections[0] = c.unique(c.name)
		if k.coordinator(c.ctx, c.role.Elections[0]) != log {
			return
		}
	}
	check(errors.New("one broker coordinates all groups and leads the log"))
}

// consumers lets all members consume, and waits until one owns the partition and the group rests.
func consumers(c *crew) {
	apart(c)
	what := c.role
	what.Do = consume
	for _, m := range c.members {
		c.tell(what, m)
		c.heard(0, nil, leads)
	}
	c.sleep(c.role.Session)
}

// owner is a planted mistake: a consumer that acts as the leader of its group as long as the group
// has not taken partition 0 from it.
type owner struct {
	say      func(report)
	election string

	mu    sync.Mutex
	token uint64 // 0: it does not own the partition
}

// consume joins the group of the first election. The topic need only exist.
func (l *logClient) consume(c command) error {
	o := &owner{say: l.say, election: c.Elections[0]}
	if0 := func(do func()) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			for _, partitions := range changed {
				if slices.Contains(partitions, 0) {
					do()
				}
			}
		}
	}
	_, err := kgo.NewClient(append(l.connection(), kgo.ConsumerGroup(o.election), kgo.ConsumeTopics(c.Bucket),
		kgo.SessionTimeout(c.Session), kgo.HeartbeatInterval(c.Session/5),
		kgo.OnPartitionsAssigned(if0(o.begin)), kgo.OnPartitionsRevoked(if0(o.end)),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) { o.end() }))...)
	go func() {
		for range time.Tick(2 * time.Millisecond) {
			o.act(acted)
		}
	}()
	return err
}

func (o *owner) begin() {
	o.mu.Lock()
	o.token = uint64(machine.Now())
	o.mu.Unlock()
	o.act(leads)
	o.act(acted)
}

func (o *owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token = 0
}

// act reports that the owner may act now.
func (o *owner) act(w what) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := machine.Now(); o.token != 0 {
		o.say(report{What: w, Election: o.election, Token: o.token, At: now, Acts: []int64{now}})
	}
}
