package agent

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/faults"
)

// TestObserverOfAStoreThatIsCutOff: no vacancy is seen while a leader renews that the observer
// cannot see.
func TestObserverOfAStoreThatIsCutOff(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign(`,"id":"a"`)
		a.waits("elected")
		for skew := range 3 {
			store := faults.New(s.store, 1, faults.Plan{})
			s.serve(store)
			s.sees("")
			time.Sleep(time.Duration(skew) * 1700 * time.Millisecond)
			a.beat()
			for s.sees("").State != confirmed {
				time.Sleep(interval / 4)
				a.beat()
			}
			store.Partition()
			for i := range 100 {
				if now := s.sees(""); now.State == vacant {
					t.Errorf("%d: in an outage after %v: %+v", skew, time.Duration(i)*lease/50, now)
				}
				if i%5 == 0 {
					a.beat()
				}
				time.Sleep(lease / 200)
			}
			store.Heal()
		}
	})
}
