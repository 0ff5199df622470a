package kafka

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
)

// TestCrowdFitsTheTopic: waiting requests go into one batch. The batch is never larger than what
// Open and Inspect require a topic to accept, with the shortest values and the longest keys.
func TestCrowdFitsTheTopic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		r := c.relay()
		s := c.open(c.over(r), kafkalog.WithTimeout(time.Minute))
		c.alter("max.message.bytes", "65536")
		key := func(i int) string { return fmt.Sprintf("%0249d", i) }
		v := read(t, s, key(0)).Version
		r.Hold()
		var all sync.WaitGroup
		errs := make([]error, 500)
		for i := range errs {
			all.Go(func() { _, errs[i] = s.CompareAndSwap(within(t), key(i), v, []byte("x")) })
		}
		pause(t.Context(), 200*time.Millisecond) // so that most of them wait for the first
		r.Release()
		all.Wait()
		for _, err := range errs {
			if err != nil && !errors.Is(err, driver.ErrConflict) {
				t.Fatal(strings.ReplaceAll(err.Error(), "0", ""))
			}
		}
	})
}
