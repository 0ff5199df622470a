package kafka

import (
	"context"
	"errors"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestClose: Close ends waiting calls and later calls.
func TestClose(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		r := c.relay()
		written, asked := &sent{key: kmsg.Produce}, &sent{key: kmsg.ListOffsets}
		s := c.open(c.over(r, kgo.WithHooks(written, asked)))
		v := create(t, s, "key", "x")
		r.Blackhole()
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
