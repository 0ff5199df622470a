package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestReplayedWritesChangeNothing delivers every record of a log once more, in every order of two.
func TestReplayedWritesChangeNothing(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "0")
		for i := range 4 {
			v = swap(t, s, "key", v, fmt.Sprint(i+1))
		}
		want := read(t, s, "key")
		client := c.client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for _, r := range c.records() {
			again := &kgo.Record{Value: r.Value, Headers: r.Headers}
			if err := client.ProduceSync(within(t), again, &kgo.Record{Value: r.Value, Headers: r.Headers}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		for name, s := range map[string]*kafkalog.Store{"the old reader": s, "a new reader": c.open(c.direct())} {
			if e := read(t, s, "key"); e.Version != want.Version || !bytes.Equal(e.Value, want.Value) {
				t.Errorf("%s sees %s in version %s", name, e.Value, e.Version)
			}
		}
		swap(t, s, "key", v, "5")
	})
}

// TestRecordsAreReadable: the value is the unchanged record of the election. Everything else is in
// one header. There is no key, so that compaction cannot remove records.
func TestRecordsAreReadable(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		create(t, s, "a key", `{"leaderID":"a"}`)
		r := c.records()[0]
		if string(r.Value) != `{"leaderID":"a"}` || len(r.Key) != 0 || len(r.Headers) != 1 || r.Headers[0].Key != "tenure" {
			t.Fatalf("the record is %+v", r)
		}
		fields := strings.SplitN(string(r.Headers[0].Value), " ", 7)
		if len(fields) != 7 || fields[0] != "1" || fields[5] != "-" || fields[6] != "a key" {
			t.Errorf("the header is %s", r.Headers[0].Value)
		}
	})
}

// ample is for stores that write a lot at once.
var ample = kafkalog.WithTimeout(time.Minute)

// fill writes this many records under its own keys.
func fill(t testing.TB, s driver.Store, records int, value []byte) {
	t.Helper()
	const writers = 256
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			key, v := fresh("filler"), driver.Version("")
			for range records / writers {
				next, err := s.CompareAndSwap(within(t), key, v, value)
				if err != nil {
					t.Errorf("fill: %v", err)
					return
				}
				v = next
			}
		})
	}
	all.Wait()
}

func TestLeaderOfARecreatedTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		leaderOfARecreatedTopic(&c.site, func() {
			if err := errors.Join(c.DeleteTopic(topic), c.CreateTopic(topic, 1, nil)); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// leaderOfARecreatedTopic: the leader steps down, and the next leader has a higher token, because
// the candidates knew the old one.
func leaderOfARecreatedTopic(s *site, recreate func()) {
	t, store := s.tb, s.open(s.direct())
	for i := range 50 {
		create(t, store, fmt.Sprint("other ", i), "x") // so that the old floor is above the new one
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "a", Lease: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	old, err := e.Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	recreate()
	select {
	case <-old.LeaseContext().Done():
		t.Logf("the leader steps down after %v: %v", time.Since(began), context.Cause(old.LeaseContext()))
	case <-within(t).Done():
		t.Fatal("the leader leads on without its topic")
	}
	_ = old.Resign(within(t))
	next, err := e.Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= old.Token() {
		t.Errorf("token %d after %d", next.Token(), old.Token())
	}
	_ = next.Resign(within(t))
}

// TestTopicRecreatedUnnoticed: the new topic is longer than the old one before an old reader
// notices it.
func TestTopicRecreatedUnnoticed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		ways := c.relays()
		old := c.open(c.through(ways))
		create(t, old, "key", "old")
		ways.Hold()
		if err := c.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
		s := c.open(c.direct())
		for i := range 20 {
			create(t, s, fmt.Sprint("other ", i), "x")
		}
		ways.Release()
		eventually(t, "the old reader reads the new topic", shows(old, "other 0", func(e driver.Entry) bool { return !e.Absent() }))
		if e := read(t, old, "key"); !e.Absent() {
			t.Errorf("the cell of the old topic holds %s still", e.Value)
		}
	})
}

func (c *cluster) produceForeign(n int) {
	c.tb.Helper()
	client := c.client(kgo.DefaultProduceTopic(topic))
	for i := range n {
		if err := client.ProduceSync(within(c.tb), &kgo.Record{Key: fmt.Append(nil, i), Value: []byte("an order")}).FirstErr(); err != nil {
			c.tb.Fatal(err)
		}
	}
}

// TestForeignTopicIsRefused: a topic with other data is refused, with any settings.
func TestForeignTopicIsRefused(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		_ = c.open(c.direct()).Close() // this creates it
		c.produceForeign(3)
		s, err := kafkalog.Open(within(t), c.direct(), topic)
		if err == nil {
			_ = s.Close()
			t.Fatal("it is opened")
		}
		if !strings.Contains(err.Error(), "3 records and none of an election") {
			t.Errorf("the error says %v", err)
		}
	})
}

// TestForeignRecordsAreReported: readers from before and later readers report them. Records of
// elections count as before.
func TestForeignRecordsAreReported(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		old := c.open(c.direct())
		v := create(t, old, "key", "first")
		if found, err := old.Inspect(within(t), 15*time.Second); err != nil || len(found) != 1 {
			t.Fatalf("before: %v (%v); want that there is one replica, and no more", found, err)
		}
		c.produceForeign(100)
		for name, s := range map[string]*kafkalog.Store{"old": old, "new": c.open(c.direct())} {
			if e := read(t, s, "key"); e.Version != v {
				t.Errorf("the %s reader sees %s", name, e.Value)
			}
			found, err := s.Inspect(within(t), 15*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			last := found[len(found)-1]
			if last.Severity != driver.Warning || last.Setting != "records" || !strings.Contains(last.Problem, "100 of the 101 records") {
				t.Errorf("the %s reader finds %v", name, found)
			}
		}
		swap(t, old, "key", v, "second")
	})
}

// TestLaterRelease: a topic with records in a future format is refused, even if it also has records
// of this release. Otherwise each release would elect its own leader by its own records.
func TestLaterRelease(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		create(t, s, "key", "first")
		header := string(c.records()[0].Headers[0].Value)
		later := &kgo.Record{Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "tenure", Value: []byte("2" + header[1:])}}}
		client := c.client(kgo.DefaultProduceTopic(topic))
		if err := client.ProduceSync(within(t), later).FirstErr(); err != nil {
			t.Fatal(err)
		}
		old, err := kafkalog.Open(within(t), c.direct(), topic)
		if err == nil {
			_ = old.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "later release") {
			t.Errorf("a topic that a later release writes to: %v", err)
		}
	})
}

// TestTopicWithoutID: records have the topic's ID. A client that is too old to get it would write
// records that others skip, and skip theirs. Then each would lead its own election in the same
// partition. The client is refused.
func TestTopicWithoutID(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		term := c.leads(s, "billing", tenure.Config{ID: "a", Lease: time.Second})
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

// TestBrokersWithoutIDs: brokers without topic IDs are refused, too, because their elections would
// be lost at an upgrade.
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

// TestInspect: there is one finding for each wrong setting. Open refuses settings that can lead to
// two leaders.
func TestInspect(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		setting, value string
		severity       driver.Severity
	}{
		{"cleanup.policy", "compact", driver.Unsafe},
		{"cleanup.policy", "compact,delete", driver.Unsafe},
		{"retention.ms", "604800000", driver.Unsafe},
		{"retention.bytes", "1048576", driver.Unsafe},
		{"retention.bytes", "-1", driver.Warning},
		{"unclean.leader.election.enable", "true", driver.Unsafe},
		{"max.message.bytes", "2048", driver.Unsafe},
		{"min.insync.replicas", "1", driver.Warning},
		{"min.insync.replicas", "3", driver.Warning},
		{"message.timestamp.type", "CreateTime", driver.Advice},
	} {
		t.Run(f.setting+"="+f.value, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, c *cluster) {
				_ = c.open(c.direct()).Close() // this creates it
				good := c.inspect(t)
				if len(good) > 0 {
					t.Fatalf("what Open creates is not good enough: %v", good)
				}
				c.alter(f.setting, f.value)
				s, err := kafkalog.Open(within(t), c.direct(), topic)
				if err == nil {
					_ = s.Close()
				}
				if errors.Is(err, kafkalog.ErrUnsafe) != (f.severity == driver.Unsafe) || err != nil && !strings.Contains(err.Error(), f.setting) {
					t.Errorf("Open says %v", err)
				}
				if f.severity == driver.Unsafe {
					return
				}
				found := c.inspect(t)
				if len(found) != 1 || found[0].Setting != f.setting || found[0].Severity != f.severity {
					t.Errorf("found: %v", found)
				}
			})
		})
	}
}

func (c *cluster) inspect(t testing.TB) []driver.Finding {
	t.Helper()
	s := c.open(c.direct())
	defer s.Close()
	found, err := s.Inspect(within(t), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestOpenOfANewTopic: brokers learn of a topic one after another. Open checks the topic, whichever
// process has created it.
func TestOpenOfANewTopic(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name   string
		policy string
		unsafe bool
		// The numbers of the requests that reach a broker which does not know the topic yet.
		deaf []int32
	}{
		{"known only to the first", "delete", false, []int32{2, 3}},
		{"unsafe, known only to the first", "compact", true, []int32{2, 3}},
		{"unsafe, made by another in between", "compact", true, []int32{1}},
	} {
		t.Run(f.name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, c *cluster) {
				_ = c.open(c.direct()).Close() // this creates it
				c.alter("cleanup.policy", f.policy)
				var asked atomic.Int32
				c.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
					c.KeepControl()
					req := r.(*kmsg.MetadataRequest)
					if len(req.Topics) == 0 || !slices.Contains(f.deaf, asked.Add(1)) {
						return nil, nil, false
					}
					return unheardOf(req), nil, true
				})
				s, err := kafkalog.Open(within(t), c.direct(), topic)
				if err == nil {
					_ = s.Close()
				}
				if errors.Is(err, kafkalog.ErrUnsafe) != f.unsafe || !f.unsafe && err != nil {
					t.Errorf("Open says %v", err)
				}
				if int(asked.Load()) <= len(f.deaf) {
					t.Errorf("%d requests: none reached a broker that does not know the topic", asked.Load())
				}
			})
		})
	}
}

// unheardOf is the answer of a broker that does not know the topics.
func unheardOf(req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	answer := req.ResponseKind().(*kmsg.MetadataResponse)
	for _, asked := range req.Topics {
		one := kmsg.NewMetadataResponseTopic()
		one.Topic, one.ErrorCode = asked.Topic, kerr.UnknownTopicOrPartition.Code
		answer.Topics = append(answer.Topics, one)
	}
	return answer
}

// TestLeaseAgainstRetention: Inspect reports a log that is overwritten in less time than the length
// of some leases.
func TestLeaseAgainstRetention(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct(), ample)
		for range 2 {
			fill(t, s, 1024, bytes.Repeat([]byte("x"), 2048))
			time.Sleep(20 * time.Millisecond)
		}
		all := c.records()
		// A late reader can tell no more.
		took := all[len(all)-1].Timestamp.Sub(all[0].Timestamp)
		stays := took * (64 << 20) / time.Duration(len(all)*(2048+150)) // about
		for lease, want := range map[time.Duration]driver.Severity{stays / 100: 0, stays / 5: driver.Warning, stays: driver.Unsafe} {
			found, err := s.Inspect(within(t), lease)
			if err != nil {
				t.Fatal(err)
			}
			var got driver.Severity
			for _, f := range found {
				if f.Setting == "retention.bytes" {
					got = f.Severity
					t.Log(f)
				}
			}
			if got != want {
				t.Errorf("a lease of %v where records stay for %v: %v, want %v", lease, stays, got, want)
			}
		}
	})
}
