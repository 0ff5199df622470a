// Package tenure elects one leader among many processes on a store that they already run.
//
// # In short
//
//	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
//	...
//	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
//		// This process leads until ctx ends. Return when it does.
//	})
//
// A store is an adapter over something that can compare and swap one value: NATS JetStream (driver/natskv), or memory for
// tests (driver/memory). [New] starts nothing; [Election.Run] campaigns, leads, hands over and campaigns again until its
// context ends.
//
// # What is promised
//
// At no moment do two processes hold a valid lease on one election, whatever the network does, however long a process
// is paused, and whatever the time of day is anywhere, as long as clocks run true within the bound of [Config.Drift].
// [Term.Err] answers from a fresh reading of the clock; the context of [Term.Context] ends before anybody else can be
// elected. What no lease can give is protection between the moment of asking and the moment of acting: for a process that may be
// frozen there, pass [Term.Token] along and let the resource refuse lower ones. docs/guarantees.md says it in full.
//
// # Two contexts
//
// The context that lead is called with is the soft one: it ends when the work should come to an end, because the program is
// shutting down, a hand-over was asked for, or the term is lost; [context.Cause] says which. While the work finishes the
// lease is still renewed, so [Term.Context], the hard one, goes on: it ends when the term is lost, when it is released, or
// when the work did not finish within [Config.FinishWithin]. Who uses the soft one alone is safe.
package tenure
