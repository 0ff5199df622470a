package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestInABubble holds an election in virtual time. A leader that lost its store steps down, and the
// next one is elected promptly after the lease.
func TestInABubble(t *testing.T) {
	const lease = 15 * time.Second
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		open := func() *kafkalog.Store { return c.open(c.direct()) }
		lost, kept := open(), open()
		elect := func(s *kafkalog.Store, id string) *tenure.Term {
			e, err := tenure.New(s, "billing", tenure.Config{ID: id, Lease: lease, Clock: clock.Standard{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx := within(t)
			term, err := e.Campaign(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return term
		}
		first := elect(lost, "a")
		time.Sleep(time.Minute)
		if err := first.Err(); err != nil {
			t.Fatalf("after a minute: %v", err)
		}
		began := time.Now()
		_ = lost.Close()
		second := elect(kept, "b")
		took := time.Since(began)
		if first.Err() == nil || second.Token() <= first.Token() || took < lease*2/3-time.Second || took > lease+time.Second {
			t.Errorf("after %v, first %v, tokens %d and %d", took, first.Err(), first.Token(), second.Token())
		}
		t.Log(fmt.Sprint("elected ", took, " after the store was lost"))
		_ = second.Resign(t.Context())
		_ = first.Resign(t.Context())
	})
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
