package kafka

import (
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// TestWatchesKnowThatTheLogIsNotRead: no broker can be reached. Watches hear of it, also those that
// begin in that time. When the log is read again, they hear of that.
func TestWatchesKnowThatTheLogIsNotRead(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		r := c.relay()
		s := c.open(c.over(r))
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
		r.Blackhole()
		early(true)
		late := heard()
		late(true)
		r.Heal()
		early(false)
		late(false)
	})
}
