// Package recipes shows how libraries that already have a place for an elector use Tenure. Each
// file stands for itself: copy it.
//
//   - gocron.go: an Elector for gocron
//   - locker.go: a Locker for gocron
//   - cron.go: a wrapper for the jobs of robfig/cron
//   - asynq.go: one scheduler of asynq for all processes
//   - collector.go: a leader elector extension for the OpenTelemetry Collector
//
// The jobs of gocron and robfig/cron run at the ticks of each process, so a tick can run twice when
// the leader changes, or not at all. Package schedule of Tenure runs each tick once.
package recipes
