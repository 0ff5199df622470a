// Package metrics collects metrics of elections, for any monitoring system. Use it to alert when an
// election has no leader, renews late or needs an operator. Set [tenure.Config.Metrics] to a [Set],
// and give the Set to an adapter: package metrics/tenureprom for Prometheus, or package
// metrics/tenureotel for OpenTelemetry. [Set.WriteText] needs no library, and `tenure run
// --metrics` needs no code.
//
// Each metric has samples as soon as an election is created, with 0 if nothing has happened, so an
// alerting rule always finds one. Terms are values and never labels. docs/observe.md explains each
// metric, what normal looks like, and what to do about each alert.
//
// The package depends on the standard library alone.
//
// [tenure.Config.Metrics]: https://pkg.go.dev/github.com/tenure-go/tenure#Config
package metrics
