//go:build integration

package operator

import (
	"errors"
	"testing"

	"github.com/tenure-go/tenure"
)

// TestCutOperatorStops: an operator that is cut off from the store, and not from the API server,
// stops before another one works.
func TestCutOperatorStops(t *testing.T) {
	if testing.Short() {
		t.Skip("the soak does it")
	}
	over(t, func(e *election) {
		leader := e.start("a")
		e.signed("before")
		next := e.start("b")
		for _, object := range []string{"one", "two"} {
			leader.way.Blackhole()
			if err := <-leader.done; !errors.Is(err, tenure.ErrLost) {
				e.Errorf("%s ended with %v", leader.id, err)
			}
			if by := e.signed(object); by != next.id {
				e.Errorf("%s signed %s, and %s is cut off", by, object, leader.id)
			}
			leader.way.Heal()
			leader, next = next, e.start("after-"+object)
		}
		for _, o := range []*operator{leader, next} {
			o.stop()
			if err := <-o.done; err != nil {
				e.Errorf("%s ended with %v", o.id, err)
			}
		}
	})
}
