package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/test/internal/acts"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// faulty are the errors that a cluster in trouble gives, two of them after it has done what was asked.
var faulty = []*kerr.Error{
	kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotEnoughReplicas,
	kerr.UnknownLeaderEpoch, kerr.OffsetNotAvailable, kerr.OffsetOutOfRange, kerr.UnknownServerError,
}

// trouble fails every nth request of some kinds.
func (c *cluster) trouble(nth int64) {
	var n atomic.Int64
	for i, err := range faulty {
		keys := []kmsg.Key{kmsg.Produce}
		switch err {
		case kerr.OffsetOutOfRange, kerr.UnknownLeaderEpoch:
			keys = []kmsg.Key{kmsg.Fetch}
		case kerr.OffsetNotAvailable:
			keys = []kmsg.Key{kmsg.ListOffsets}
		}
		c.Fault(kfake.Fault{Keys: keys, Topic: topic, Err: err, Count: -1, When: func(kmsg.Request) bool {
			return n.Add(1)%(nth*int64(len(faulty))) == int64(i)
		}})
	}
}

// TestLinearizable has clients read and write one cell while requests fail, connections hang and break, and the partition
// moves. One register must explain all answers.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.NumBrokers(3))
	relays := c.relays()
	var stores []*kafkalog.Store
	for range 2 {
		stores = append(stores, c.open(c.direct()))
	}
	stores = append(stores, c.open(c.through(relays)), c.open(c.through(relays)))
	c.trouble(4)

	length, least := 6*time.Second, 50
	if testing.Short() {
		length, least = 2*time.Second, 15
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	h := history.New("cell")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			h.Play(ctx, stores[i%len(stores)], history.Client{ID: i, Attention: 250 * time.Millisecond, Rand: rand.New(rand.NewPCG(uint64(i), 7))})
		})
	}
	all.Go(func() { c.shake(ctx, relays) })
	all.Wait()
	eventually(t, "a last read", func() bool {
		last, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, ok := h.Read(last, stores[0], 100)
		return ok
	})
	h.Check(t, history.Rules{})
	reads, swaps, refusals, unknowns := h.Tally()
	t.Logf("%d reads, %d swaps, %d refusals, %d open outcomes", reads, swaps, refusals, unknowns)
	if swaps < least || refusals < least || unknowns < 15 {
		t.Error("this run proves little")
	}
}

// shake moves the partition and holds the network up, again and again.
func (c *cluster) shake(ctx context.Context, relays []*relay.Relay) {
	for node := int32(0); ctx.Err() == nil; node = (node + 1) % 3 {
		_ = c.MoveTopicPartition(topic, 0, node)
		pause(ctx, 150*time.Millisecond)
		for _, r := range relays {
			r.Hold()
		}
		pause(ctx, 100*time.Millisecond)
		for _, r := range relays {
			r.Release()
		}
		pause(ctx, 150*time.Millisecond)
		relays[node].Heal() // which breaks its connections
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestElectionsOverFaults has three candidates while every twelfth request fails and the partition moves. Leaders leave in
// good order; no two may lead at once, and no term may end before its time.
func TestElectionsOverFaults(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.NumBrokers(3))
	var book acts.Book
	var elected atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range 3 {
		store := c.open(c.direct())
		id := fmt.Sprint("c", i)
		e, err := tenure.New(store, "billing", tenure.Config{ID: id, Lease: time.Second, OnEvent: func(e tenure.Event) {
			if e.Kind == tenure.EventLost && !errors.Is(e.Cause, tenure.ErrExpired) || e.Kind == tenure.EventAlarm {
				t.Errorf("%s, term %d: %v", e.ID, e.Term, e.Cause)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		asker := asking.Start(func(election string, token uint64, stamps []int64) { book.Add(election, id, token, stamps...) })
		all.Go(func() {
			defer asker.Stop()
			for ctx.Err() == nil {
				_ = e.Run(ctx, func(soft context.Context, term *tenure.Term) error {
					asker.Enter("billing", term, asking.ByTerm)
					elected.Add(1)
					pause(soft, 1500*time.Millisecond)
					return nil
				})
			}
		})
	}
	c.trouble(12)
	all.Go(func() { c.shake(ctx, []*relay.Relay{c.relay(), c.relay(), c.relay()}) })
	eventually(t, "five terms", func() bool { return elected.Load() >= 5 })
	cancel()
	all.Wait()
	v := book.Judge()
	t.Logf("%d terms, %d answers of yes", v.Terms, v.Answers)
	if !v.Safe() || v.Terms < 5 {
		t.Errorf("%d answers of yes after the next was elected, up to %v after; %d terms not above the last; %d terms", v.Stale, v.Overlap,
			v.Regressed, v.Terms)
	}
}
