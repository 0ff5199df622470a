// Package tenuretest gives code that leads, or waits to, a real election in which its test decides
// which candidate is elected. Use it to test what your program does when it is elected, asked to
// finish, fenced, cut off or suspended.
//
// Nothing in it is a mock. The store is driver/memory, the candidates are those of the code under
// test, and one more candidate, the [Rival], keeps them from leading until the test lets them. So
// contexts, errors and tokens are as in production.
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
// Within a testing/synctest bubble, in which New is to be called, waiting costs no time. Without
// one everything works as well; only a lease that expires after [Stage.Cut] then takes its 30
// seconds, unless the test shortens Config.Lease.
//
// The stage sees the record in the store. An elected candidate learns of it a moment later, and
// only then is its function called: let a test wait for the effects of its code, as on
// service.began above.
package tenuretest
