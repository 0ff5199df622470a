// Package tenuretest puts code that leads, or waits to, on a stage where its test decides who is elected.
//
// Nothing on it is a mock. The store is driver/memory, the candidates are those of the code under test, and what keeps
// them from leading until the test says so is one more candidate, the [Rival]. So contexts, errors and tokens are what
// they are in production.
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
// Within a testing/synctest bubble, in which New is to be called, waiting costs no time. Without one everything works
// as well; only a lease that runs out after [Stage.Cut] then takes its 30 seconds, unless the test
// shortens Config.Lease.
//
// The stage sees what the store holds. Whoever is elected there learns of it a moment later, and only then is its
// function called: let a test wait for what its code does, as on service.began above.
package tenuretest
