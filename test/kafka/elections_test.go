package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// faulty are the errors of a cluster in trouble. Two of them come after the request has been
// carried out.
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

// shake moves the partition, delays the network and breaks connections, again and again.
func (c *cluster) shake(ctx context.Context, relays relay.Set) {
	for node := int32(0); ctx.Err() == nil; node = (node + 1) % 3 {
		_ = c.MoveTopicPartition(topic, 0, node)
		pause(ctx, 150*time.Millisecond)
		relays.Hold()
		pause(ctx, 100*time.Millisecond)
		relays.Release()
		pause(ctx, 150*time.Millisecond)
		relays[c.seeds[node]].Heal() // this breaks its connections
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestElectionsOverFaults has three candidates while every twelfth request fails, the partition
// moves, and connections hang and break. Leaders leave gracefully. No two may lead at once, and no term may end before its time.
func TestElectionsOverFaults(t *testing.T) { inBubble(t, 3, electionsOverFaults) }

func electionsOverFaults(t *testing.T, c *cluster) {
	relays := c.relays()
	var book witness.Book
	var elected atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range 3 {
		store := c.open(c.through(relays))
		id := fmt.Sprint("c", i)
		e, err := tenure.New(store, "billing", tenure.Config{ID: id, Lease: time.Second, Clock: clock.Standard{}, OnEvent: func(e tenure.Event) {
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
	all.Go(func() { c.shake(ctx, relays) })
	eventually(t, "ten terms", func() bool { return elected.Load() >= 10 })
	cancel()
	all.Wait()
	v := book.Judge()
	t.Logf("%d terms, %d answers of yes", v.Terms, v.Acts)
	if !v.Safe() || v.Terms < 10 {
		t.Error(v)
	}
}

// TestRequestsPerMinute counts the requests of ten candidates while one of them leads and renews
// every second, and those of an idle store.
func TestRequestsPerMinute(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		var all []func()
		count := func(what string) map[string]int {
			kinds := []kmsg.Key{kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata}
			got := map[string]int{}
			var handles []*kfake.FaultHandle
			for _, kind := range kinds {
				handles = append(handles, c.Fault(kfake.Fault{Keys: []kmsg.Key{kind}, Observe: true, Count: -1}))
			}
			time.Sleep(time.Minute)
			for i, h := range handles {
				got[kinds[i].Name()] = h.Hits()
				h.Remove()
			}
			t.Log(what, got)
			return got
		}
		idle := c.open(c.direct())
		if got := count("one store, idle"); got["Fetch"] > 13 || got["Produce"]+got["ListOffsets"] > 0 {
			t.Errorf("an idle store asks too much: %v", got)
		}
		_ = idle.Close()
		for i := range 10 {
			s := c.open(c.direct())
			e, err := tenure.New(s, "billing", tenure.Config{ID: fmt.Sprint(i), Lease: 3 * time.Second, Clock: clock.Standard{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
					<-ctx.Done()
					return nil
				})
			}()
			all = append(all, func() { cancel(); <-done })
		}
		time.Sleep(10 * time.Second)
		got := count("ten candidates")
		if got["Produce"] > 62 || got["Fetch"] > 12*60 || got["ListOffsets"] > 70 {
			t.Errorf("ten candidates ask too much: %v", got)
		}
		for _, leave := range all {
			leave()
		}
	})
}
