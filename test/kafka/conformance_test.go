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
	"github.com/tenure-go/tenure/compat/neli"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const plainSASL = "PLAIN"

// harness is on its own cluster in virtual time.
func harness(t testing.TB) drivertest.Harness {
	t.Helper()
	c := startVirtual(t, 1, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "nobody", "nobody", may(kmsg.ACLOperationRead), may(kmsg.ACLOperationWrite)))
	ways := c.relays()
	h := drivertest.Harness{
		Patience: 5 * time.Minute,
		Store:    c.open(c.through(ways, as("admin"))),
		Peer:     c.open(c.direct(as("admin"))),
		Cut: func() func() {
			ways.Blackhole()
			return ways.Heal
		},
	}
	h.Denied = c.open(c.direct(as("nobody")))
	c.revoke("nobody")
	h.Delete = func(ctx context.Context, key string) error { return remove(ctx, h.Peer, key) }
	h.Recreate = func(context.Context) error {
		return errors.Join(c.DeleteTopic(topic), c.CreateTopic(topic, 1, nil))
	}
	return h
}

// may is a right to the topic.
func may(operation kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: operation, Allow: true}
}

// revoke removes all rights of a user.
func (c *cluster) revoke(user string) {
	c.tb.Helper()
	principal := "User:" + user
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	f.Operation, f.PermissionType, f.Principal = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny, &principal
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Filters = append(req.Filters, f)
	if _, err := req.RequestWith(within(c.tb), c.client(as("admin"))); err != nil {
		c.tb.Fatal(err)
	}
}

// remove removes a key as an operator does.
func remove(ctx context.Context, s driver.Store, key string) error {
	e, err := s.Read(ctx, key)
	if err != nil {
		return err
	}
	_, err = s.CompareAndSwap(ctx, key, e.Version, nil)
	return err
}

func TestFakeConformance(t *testing.T) { drivertest.RunInBubbles(t, harness) }

func TestFakeElection(t *testing.T) { electiontest.RunInBubbles(t, harness) }

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
// moves, and connections hang and break. Leaders leave gracefully. No two may lead at once, and no
// term may end before its time.
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
				_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
					asker.Enter("billing", term, asking.ByTerm)
					elected.Add(1)
					pause(ctx, 1500*time.Millisecond)
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

// TestRequestsPerMinute counts the requests of all members while one of them leads and renews.
func TestRequestsPerMinute(t *testing.T) {
	for _, x := range []struct {
		name  string
		begin func(c *cluster, n int)
		n     int
		most  map[kmsg.Key]int
		total int
	}{
		{"an idle store", func(c *cluster, _ int) { c.open(c.direct()) }, 1, map[kmsg.Key]int{kmsg.Fetch: 13}, 13},
		{
			"candidates, lease 3s", (*cluster).contend, 10,
			map[kmsg.Key]int{kmsg.Produce: 62, kmsg.Fetch: 12 * 60, kmsg.ListOffsets: 70}, 900,
		},
		{"members of a group", func(c *cluster, n int) { c.joinMany(n) }, 10, nil, 205},
		{"candidates of a group, lease 15s", func(c *cluster, n int) {
			for range n {
				c.run(new(ledger), tenure.Config{})
			}
		}, 10, nil, 500},
		{"programs for goNELI", (*cluster).pulse, 10, nil, 1334},
	} {
		each(t, x.name, func(t *testing.T, c *cluster) {
			x.begin(c, x.n)
			time.Sleep(time.Minute)
			total, of := c.Fault(kfake.Fault{Observe: true, Count: -1}), map[kmsg.Key]*kfake.FaultHandle{}
			for key := range x.most {
				of[key] = c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Observe: true, Count: -1})
			}
			time.Sleep(time.Minute)
			t.Logf("%d: %d requests a minute", x.n, total.Hits())
			if total.Hits() > x.total || total.Hits() < 10 {
				t.Errorf("%d requests; at most %d may be", total.Hits(), x.total)
			}
			for key, most := range x.most {
				if n := of[key].Hits(); n > most {
					t.Errorf("%d requests %s; at most %d may be", n, key.Name(), most)
				}
			}
		})
	}
}

// contend starts candidates.
func (c *cluster) contend(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	c.tb.Cleanup(func() { cancel(); all.Wait() })
	for i := range n {
		e, err := tenure.New(c.open(c.direct()), "billing", tenure.Config{ID: fmt.Sprint(i), Lease: 3 * time.Second})
		if err != nil {
			c.tb.Fatal(err)
		}
		all.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				return nil
			})
		})
	}
}

// pulse starts programs that were written for goNELI.
func (c *cluster) pulse(n int) {
	for i := range n {
		p := c.begin(fmt.Sprint(i), func(cfg *neli.Config) { delete(cfg.KafkaConfig, "heartbeat.interval.ms") })
		if _, err := p.Background(func() { time.Sleep(100 * time.Millisecond) }); err != nil {
			c.tb.Fatal(err)
		}
	}
}
