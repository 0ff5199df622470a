package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func outcome(err error) string {
	switch {
	case err == nil:
		return "applied"
	case errors.Is(err, driver.ErrConflict):
		return "conflict"
	case errors.Is(err, driver.ErrDenied):
		return "denied"
	}
	return "unknown"
}

// TestOutcomes answers one write request with each error, in some cases after carrying the request
// out. The result of the call must be true. A write with a lost answer is found in the log. The
// outcome of a refused write is unknown unless a right is missing.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  *kerr.Error
		want string
		held bool // whether the cell holds the write afterwards
	}{
		{kerr.NotLeaderForPartition, "unknown", false},
		{kerr.FencedLeaderEpoch, "unknown", false},
		{kerr.LeaderNotAvailable, "unknown", false},
		{kerr.NotEnoughReplicas, "unknown", false},
		{kerr.UnknownTopicID, "unknown", false},
		{kerr.UnknownTopicOrPartition, "unknown", false},
		{kerr.KafkaStorageError, "unknown", false},
		{kerr.MessageTooLarge, "unknown", false},
		{kerr.InvalidRecord, "unknown", false},
		{kerr.UnknownServerError, "unknown", false},
		{kerr.TopicAuthorizationFailed, "denied", false},
		{kerr.ClusterAuthorizationFailed, "denied", false},
		{kerr.RequestTimedOut, "applied or unknown", true},
		{kerr.NotEnoughReplicasAfterAppend, "applied or unknown", true},
	} {
		t.Run(c.err.Message, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, cl *cluster) {
				s := cl.open(cl.direct())
				v := create(t, s, "key", "first")
				h := cl.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: c.err})
				_, err := s.CompareAndSwap(within(t), "key", v, []byte("second"))
				if got := outcome(err); !strings.Contains(c.want, got) {
					t.Errorf("%s: %v; want %s", got, err, c.want)
				}
				if h.Hits() != 1 {
					t.Errorf("%d requests", h.Hits())
				}
				e := read(t, s, "key")
				if held := string(e.Value) == "second"; held != c.held {
					t.Errorf("afterwards the cell holds %s", e.Value)
				}
				swap(t, s, "key", e.Version, "third")
			})
		})
	}
}

// TestReadOutcomes fails the requests of a read and of the follower. Neither takes a missing answer
// for absence.
func TestReadOutcomes(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch} {
		for _, fault := range []*kerr.Error{
			kerr.NotLeaderForPartition, kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.OffsetNotAvailable,
			kerr.OffsetOutOfRange, kerr.UnknownLeaderEpoch, kerr.TopicAuthorizationFailed, kerr.UnknownServerError,
		} {
			t.Run(fmt.Sprint(key.Name(), " ", fault.Message), func(t *testing.T) {
				inBubble(t, 1, func(t *testing.T, cl *cluster) {
					s := cl.open(cl.direct())
					create(t, s, "key", "first")
					h := cl.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Topic: topic, Err: fault, Count: -1})
					cl.disturb() // a fetch is already in flight: it ends with the next record
					denied, attention := fault == kerr.TopicAuthorizationFailed, 300*time.Millisecond
					if denied { // this ends the call
						attention = patience
					}
					ctx, cancel := context.WithTimeout(t.Context(), attention)
					defer cancel()
					_, err := s.Read(ctx, "key")
					if err == nil && key == kmsg.ListOffsets {
						t.Error("a read succeeds without an answer")
					}
					if err != nil && denied != errors.Is(err, driver.ErrDenied) {
						t.Errorf("denied: %v; %v", !denied, err)
					}
					h.Remove()
					eventually(t, "the store recovers", shows(s, "key", func(e driver.Entry) bool {
						if e.Absent() {
							t.Fatal("the record is not there")
						}
						return true
					}))
				})
			})
		}
	}
}

// disturb writes foreign bytes.
func (c *cluster) disturb() {
	c.tb.Helper()
	client := c.client(kgo.DefaultProduceTopic(topic))
	if err := client.ProduceSync(within(c.tb), kgo.StringRecord("somebody else's")).FirstErr(); err != nil {
		c.tb.Fatal(err)
	}
}

// TestLostAnswer lets the relay swallow the answer to a write, and all later ones. The call returns
// in time, and finds its write later.
func TestLostAnswer(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		s := c.open(c.through(ways))
		v := create(t, s, "key", "first")
		ways.Mute()
		taken := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
		giveUp := c.beginWrite(s, v, "second")
		if err := taken.Wait(within(t), 1); err != nil {
			t.Fatal(err)
		}
		giveUp()
		ways.Heal()
		eventually(t, "the write is seen", shows(s, "key", func(e driver.Entry) bool { return string(e.Value) == "second" }))
	})
}

// beginWrite writes until its caller gives up, which must leave the outcome unknown.
func (c *cluster) beginWrite(s driver.Store, v driver.Version, value string) (giveUp func()) {
	ctx, cancel := context.WithCancel(c.tb.Context())
	ended := aside(func() error {
		_, err := s.CompareAndSwap(ctx, "key", v, []byte(value))
		return err
	})
	return func() {
		c.tb.Helper()
		cancel()
		if err := <-ended; outcome(err) != "unknown" {
			c.tb.Errorf("%v; want an open outcome", err)
		}
	}
}

// TestWriteAppliedLate delays a write until another one took its place.
func TestWriteAppliedLate(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		produced := &sent{key: kmsg.Produce}
		slow, quick := c.open(c.through(ways, kgo.WithHooks(produced))), c.open(c.direct())
		v := create(t, slow, "key", "first")
		stop, err := quick.Watch(t.Context(), "key", func(e driver.Entry) {
			if string(e.Value) == "late" {
				t.Error("a write without effect is pushed")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		ways.Hold()
		onItsWay := produced.another(t)
		giveUp := c.beginWrite(slow, v, "late")
		onItsWay()
		giveUp()
		v = swap(t, quick, "key", v, "second")
		ways.Release()
		eventually(t, "the late write has landed", func() bool { return c.PartitionInfo(topic, 0).HighWatermark == 3 })
		if e := read(t, quick, "key"); e.Version != v {
			t.Fatalf("the cell holds %s", e.Value)
		}
		eventually(t, "the slow one agrees", shows(slow, "key", func(e driver.Entry) bool { return e.Version == v }))
	})
}

// TestOpenReportsTheReason: each error has its own text, and comes soon.
func TestOpenReportsTheReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, openSaysWhy)
}

func openSaysWhy(t *testing.T) {
	wrong := startVirtual(t, 1, kfake.EnableSASL(), kfake.Superuser(plainSASL, "admin", "admin"))
	wrong.refuseLogins()
	c := startVirtual(t, 1, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "reader", "reader", may(kmsg.ACLOperationRead)), kfake.User(plainSASL, "nobody", "nobody"))
	for _, f := range []struct {
		name, says string
		connection []kgo.Opt
		denied     bool
		opts       []kafkalog.Option
	}{
		{"no broker", "unable to dial", c.direct(kgo.SeedBrokers("127.0.0.1:1")), false, nil},
		{"wrong password", "SASL_AUTHENTICATION_FAILED", wrong.direct(as("stranger")), true, nil},
		{"no rights", "TOPIC_AUTHORIZATION_FAILED", c.direct(as("nobody")), true, nil},
		{"may not create", "grant Create", c.direct(as("reader")), true, nil},
		{"not to be created", "UNKNOWN_TOPIC_OR_PARTITION", c.direct(as("admin")), false, []kafkalog.Option{kafkalog.WithoutCreate()}},
		{"a group", "leave out kgo.ConsumerGroup", c.direct(as("admin"), kgo.ConsumerGroup("g")), false, nil},
		{"no time", "timeout", c.direct(as("admin")), false, []kafkalog.Option{kafkalog.WithTimeout(time.Millisecond)}},
		{"no replicas", "replicas", c.direct(as("admin")), false, []kafkalog.Option{kafkalog.WithReplicas(-1)}},
	} {
		var err error
		prompt(t, promptly, func() {
			var s *kafkalog.Store
			if s, err = kafkalog.Open(within(t), f.connection, topic, f.opts...); err == nil {
				_ = s.Close()
				t.Fatal(f.name, ": it opens")
			}
		})
		if !strings.Contains(err.Error(), f.says) || errors.Is(err, driver.ErrDenied) != f.denied {
			t.Errorf("%s: denied %v, says: %v", f.name, !f.denied, err)
		}
		if errors.Is(err, kafkalog.ErrMayNotCreate) != (f.name == "may not create") {
			t.Errorf("%s: wrong for ErrMayNotCreate: %v", f.name, err)
		}
	}
}

// refuseLogins answers each login as brokers do. kfake itself hangs up.
func (c *cluster) refuseLogins() {
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
}

// TestVersionFromAFasterClient swaps from a version that another client got, and that this one has
// not read yet.
func TestVersionFromAFasterClient(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		slow, quick := c.open(c.through(ways)), c.open(c.direct())
		v := create(t, slow, "key", "first")
		ways.Hold()
		v = swap(t, quick, "key", v, "second")
		time.AfterFunc(50*time.Millisecond, ways.Release)
		v = swap(t, slow, "key", v, "third")
		if e := read(t, quick, "key"); e.Version != v {
			t.Errorf("the cell holds %s", e.Value)
		}
	})
}

// TestClose: Close ends waiting calls and later calls.
func TestClose(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		written, asked := &sent{key: kmsg.Produce}, &sent{key: kmsg.ListOffsets}
		s := c.open(c.through(ways, kgo.WithHooks(written, asked)))
		v := create(t, s, "key", "x")
		ways.Blackhole()
		writes, asks := written.another(t), asked.another(t)
		ended := make(chan error, 2)
		go func() {
			_, err := s.CompareAndSwap(t.Context(), "key", v, []byte("y"))
			ended <- err
		}()
		go func() {
			_, err := s.Read(t.Context(), "key")
			ended <- err
		}()
		writes()
		asks()
		_ = s.Close()
		_ = s.Close()
		for range 2 {
			select {
			case err := <-ended:
				if outcome(err) != "unknown" {
					t.Errorf("a call ends with %v", err)
				}
			case <-within(t).Done():
				t.Fatal("a call outlives the store")
			}
		}
		if _, err := s.Read(within(t), "key"); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a closed store reads: %v", err)
		}
		if _, err := s.Watch(within(t), "key", func(driver.Entry) {}); err == nil {
			t.Error("a closed store watches")
		}
	})
}

// TestWatchesKnowThatTheLogIsNotRead: no broker can be reached. Watches hear of it, also those that
// begin in that time. When the log is read again, they hear of that.
func TestWatchesKnowThatTheLogIsNotRead(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		s := c.open(c.through(ways))
		create(t, s, "key", "first")
		heard := func() (next func(lost bool)) {
			seen := make(chan driver.Entry, 100)
			stop, err := s.Watch(t.Context(), "key", func(e driver.Entry) { seen <- e })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			return func(lost bool) {
				for {
					select {
					case e := <-seen:
						if (e.Lost != nil) == lost {
							return
						}
					case <-within(t).Done():
						t.Fatalf("no watch hears of the change to lost = %v", lost)
					}
				}
			}
		}
		early := heard()
		ways.Blackhole()
		early(true)
		late := heard()
		late(true)
		ways.Heal()
		early(false)
		late(false)
	})
}

// TestForgottenConnection: when a caller gives up a write, the write's connection is closed.
// Otherwise later writes would wait behind it until the store's timeout.
func TestForgottenConnection(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		g := newGate(c.site)
		s := c.open(c.direct(g.dialer()), kafkalog.WithTimeout(time.Minute))
		v := create(t, s, "key", "first")
		g.hold(kmsg.Produce)
		giveUp := c.beginWrite(s, v, "lost")
		letter := g.caught()
		giveUp()
		letter.abandoned()
		began := time.Now()
		c.insist(s, "key", v, patience)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the next write takes %v", took)
		}
		letter.deliver()
	})
}

// TestCrowdFitsTheTopic: waiting requests go into one batch. The batch is never larger than what
// Open and Inspect require a topic to accept, with the shortest values and the longest keys.
func TestCrowdFitsTheTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		s := c.open(c.through(ways), kafkalog.WithTimeout(time.Minute))
		c.alter("max.message.bytes", "65536")
		key := func(i int) string { return fmt.Sprintf("%0249d", i) }
		v := read(t, s, key(0)).Version
		ways.Hold()
		var all sync.WaitGroup
		errs := make([]error, 500)
		for i := range errs {
			all.Go(func() { _, errs[i] = s.CompareAndSwap(within(t), key(i), v, []byte("x")) })
		}
		pause(t.Context(), 200*time.Millisecond) // so that most of them wait for the first
		ways.Release()
		all.Wait()
		for _, err := range errs {
			if err != nil && !errors.Is(err, driver.ErrConflict) {
				t.Fatal(strings.ReplaceAll(err.Error(), "0", ""))
			}
		}
	})
}
