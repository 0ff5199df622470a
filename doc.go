// Package tenure elects one leader among many processes on a store that they already run. Use it
// for work that exactly one of several copies of a service may do.
//
// # In short
//
//	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
//	...
//	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
//		// This process leads. When ctx ends, finish the work and return.
//	})
//
// A store is an adapter over a system that can compare and swap one value: NATS JetStream
// (driver/natskv), S3-style object storage (driver/s3object), Kafka (driver/kafkalog), a SQL
// database (driver/sqlstore), or memory for tests (driver/memory). The first three are modules of
// their own. [New] starts nothing. [Election.Run] campaigns, leads, hands over and campaigns again
// until its context ends.
//
// # Guarantee
//
// Two processes never hold a valid lease on one election at the same moment. This holds for every
// network fault, for any pause of a process and for any setting of the wall clocks. It needs a
// store that keeps each write it has confirmed, and clocks whose rates stay within [Tuning.Drift].
//
// [Term.Err] reads the clock at each call, so its answer is right even after a pause.
// [Term.Context] ends before another candidate can be elected, unless the process is paused at that
// moment. No lease protects the time between a check and the action after it: a process may be
// paused there. For this case pass [Term.Token] with each write, and let the resource refuse a
// token that is lower than one it has seen. docs/guarantees.md states the guarantee in full.
//
// # Two contexts
//
// The function given to Run, called lead here, receives the soft context. It ends when the work
// should finish: the program shuts down, a hand-over was requested, this candidate is no longer the
// nominee or no longer eligible, or the term is lost or resigned. [context.Cause] returns the
// reason.
//
// [Term.Context] is the hard context. It ends when the term is lost, when the work has stopped, or
// when the work, after it was asked to finish, takes longer than [Config.FinishWithin]. Until then
// the lease is renewed. Work that uses only the soft context is safe. A job that should still
// finish after the soft context has ended uses the hard one: see [Lead].
//
// # Observing
//
// There is one way for each need:
//
//	a snapshot     Election.Status   health handlers, dashboards
//	a sequence     Election.Leaders  label the process that leads, route to it
//	a condition    Election.Wait     wait until a successor leads, or until the store was read
//	a subscription Election.Observe  keep Status up to date without a goroutine
//	a hook         Config.OnEvent    alerts; ReasonOf makes labels
//	a log          Config.Logger     the same events, for people
//	metrics        Config.Metrics    Prometheus, OpenTelemetry: see package metrics
//
// Leaders, Wait and Observe follow an election without campaigning. Status does not call the store:
// it shows what this process has learned while it campaigned or observed.
//
// # Many elections
//
// A [Group] holds thousands of elections of one process in little memory. Package fleet spreads the
// leadership of many elections over processes. Package dashboard shows elections in a browser.
// Package admin is for operators' tools, and package tenuretest for tests of programs that use this
// package.
package tenure
