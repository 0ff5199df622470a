package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/twmb/franz-go/pkg/kgo"
)

// owner is a planted mistake: a consumer that acts as the leader of its group while the group has not taken partition 0 from
// it. Its stamps are those of an election's work.
type owner struct {
	say      func(report)
	election string

	mu     sync.Mutex
	owns   bool
	token  uint64
	stamps []int64
}

// pace is the time from one act to the next.
const pace = 2 * time.Millisecond

// consume joins the group of the first election, whose topic is the log's: it need only exist.
func (s *logSource) consume(c command) error {
	o := &owner{say: s.say, election: c.Elections[0]}
	_, err := kgo.NewClient(append(s.connection(), kgo.ConsumerGroup(o.election), kgo.ConsumeTopics(c.Bucket),
		kgo.SessionTimeout(c.Session), kgo.HeartbeatInterval(c.Session/5),
		kgo.OnPartitionsAssigned(o.gain), kgo.OnPartitionsRevoked(o.yield), kgo.OnPartitionsLost(o.lose))...)
	if err != nil {
		return err
	}
	go o.run()
	return nil
}

func (o *owner) gain(_ context.Context, _ *kgo.Client, got map[string][]int32) {
	if hasFirst(got) {
		o.begin()
	}
}

// yield is called at each change of the group, mostly with nothing.
func (o *owner) yield(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	if hasFirst(gone) {
		o.end()
	}
}

// lose is called when the session is over, which takes everything.
func (o *owner) lose(context.Context, *kgo.Client, map[string][]int32) { o.end() }

func hasFirst(partitions map[string][]int32) bool {
	for _, some := range partitions {
		if slices.Contains(some, 0) {
			return true
		}
	}
	return false
}

func (o *owner) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := machine.Now()
	o.flush()
	o.owns, o.token, o.stamps = true, uint64(now), []int64{now}
	o.say(report{What: leads, Election: o.election, Token: o.token, At: now})
}

func (o *owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owns = false
	o.flush()
}

func (o *owner) run() {
	for range time.Tick(pace) {
		o.act()
	}
}

func (o *owner) act() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owns {
		o.stamps = append(o.stamps, machine.Now())
	}
	if len(o.stamps) >= 25 {
		o.flush()
	}
}

// flush is called under the lock.
func (o *owner) flush() {
	if len(o.stamps) > 0 {
		o.say(report{What: acted, Election: o.election, Token: o.token, Acts: slices.Clone(o.stamps)})
		o.stamps = o.stamps[:0]
	}
}
