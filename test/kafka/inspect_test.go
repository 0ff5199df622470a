package kafka

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
