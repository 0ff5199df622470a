// Package tenure elects one leader among many processes on a store that they already run. Use it
// for work that exactly one of several copies of a service may do.
//
//	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
//	...
//	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
//		// This process leads. When ctx ends, finish the work and return.
//	})
//
// A store is an adapter, such as driver/natskv, driver/s3object, driver/kafkalog, driver/sqlstore,
// or driver/memory for tests. Two processes never hold a valid lease on one election at the same
// moment, whatever networks, pauses and wall clocks do, if the store keeps each write that it has
// confirmed, and clock rates stay within Tuning.Drift. docs/guarantees.md states this in full.
//
// [Term.Err] reads the clock at each call, so its answer is right even after a pause. No lease
// protects the time between a check and the action after it, since a process may be paused there.
// For this case pass [Term.Token] with each write, and let the resource refuse a token that is
// lower than one it has seen.
//
// [Election.Status], [Election.Watch] and [Election.Wait] observe; [Config] has outputs for events,
// logs and metrics. A [Group] holds thousands of elections; package fleet spreads their leadership
// over processes. Package admin is for operators' tools, and tenuretest for tests of programs.
package tenure
