// Package tenuretest helps to test code that leads or waits to lead. It gives the code a real
// election, in which the test decides which candidate is elected. Use it to test what your program
// does when it is elected, asked to finish, fenced, cut off or suspended.
//
// Nothing in it is a mock, so contexts, errors and tokens are as in production. The store is
// driver/memory, and the candidates are those of the code under test. One more candidate, the
// [Rival], leads until the test elects one of them.
//
//	func TestBillingStopsWhenItIsFenced(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			stage := tenuretest.New(t, "billing")
//			service := start(t, stage.Store("node-1"), stage.Config("node-1"))
//			stage.Elect("node-1")
//			term := <-service.began
//			stage.Fence()
//			if err := <-service.ended; !errors.Is(err, tenure.ErrLost) {
//				t.Errorf("the work stopped with %v", err)
//			}
//			if rival := stage.Leader(); rival.Term <= term.Token() {
//				t.Errorf("the rival's token is %d, the service's was %d", rival.Term, term.Token())
//			}
//		})
//	}
//
// Call New within a testing/synctest bubble: there, waiting costs no time. Without a bubble
// everything works too, in real time. Then the lease of a leader that [Stage.Cut] cuts off takes 30
// s to expire, unless the test shortens Config.Lease.
//
// The stage sees the record in the store. An elected candidate learns of it a moment later, and
// only then is its function called. So let the test wait for an effect of its code, as on
// service.began above.
package tenuretest
