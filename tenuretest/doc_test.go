package tenuretest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tenuretest"
)

// This is the test in the package comment.
func TestBillingStopsWhenItIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := tenuretest.New(t, "billing")
		service := start(t, stage.Store("node-1"), stage.Config("node-1"))
		stage.Elect("node-1")
		term := <-service.began
		stage.Fence()
		if err := <-service.ended; !errors.Is(err, tenure.ErrLost) {
			t.Errorf("the work stopped with %v", err)
		}
		if rival := stage.Leader(); rival.Term <= term.Token() {
			t.Errorf("the rival's token is %d, the service's was %d", rival.Term, term.Token())
		}
	})
}
