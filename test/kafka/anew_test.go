package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

// TestRecreatedTopic: records of the old topic do not count, none of its versions fits, and calls
// return an error.
func TestRecreatedTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		v := create(t, s, "key", "first")
		if err := c.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if e, err := s.Read(short, "key"); err == nil {
			t.Errorf("without a topic the cell reads %+v", e)
		}
		if _, err := s.CompareAndSwap(short, "key", v, []byte("x")); outcome(err) != "unknown" {
			t.Errorf("without a topic a swap is %v", err)
		}
		if err := c.CreateTopic(topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new topic is read", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e, err := s.Read(ctx, "key")
			return err == nil && e.Absent()
		})
		create(t, s, "key", "new")
		if _, err := s.CompareAndSwap(within(t), "key", v, []byte("x")); outcome(err) != "conflict" {
			t.Errorf("a swap from a version of the old topic: %v", err)
		}
	})
}

// TestLeaderOfARecreatedTopic: the leader steps down, and the next leader has a higher token.
func TestLeaderOfARecreatedTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		s := c.open(c.direct())
		for i := range 50 {
			create(t, s, fmt.Sprint("other ", i), "x") // so that the old floor is above the new one
		}
		e, err := tenure.New(s, "billing", tenure.Config{ID: "a", Lease: time.Second, Clock: c.clock()})
		if err != nil {
			t.Fatal(err)
		}
		old, err := e.Campaign(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
		if err := c.CreateTopic(topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-old.Context().Done():
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
	})
}

// TestTopicRecreatedUnnoticed: the new topic is longer than the old one before an old reader
// notices it.
func TestTopicRecreatedUnnoticed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		r := c.relay()
		old := c.open(c.over(r))
		create(t, old, "key", "old")
		r.Hold()
		if err := c.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
		s := c.open(c.direct())
		for i := range 20 {
			create(t, s, fmt.Sprint("other ", i), "x")
		}
		r.Release()
		eventually(t, "the old reader reads the new topic", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e, err := old.Read(ctx, "other 0")
			return err == nil && !e.Absent()
		})
		if e := read(t, old, "key"); !e.Absent() {
			t.Errorf("the cell of the old topic holds %s still", e.Value)
		}
	})
}
