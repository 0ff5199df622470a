// Package schedule runs jobs at the ticks of cron expressions, on the leader of an election. Each
// tick has a record in the election's store, so that a failover, clocks that differ and a lost
// answer run no tick twice.
//
//	report := schedule.Every("0 3 * * *").Named("report").Do(makeReport)
//	jobs, err := schedule.New(store, "nightly", schedule.Config{}, report)
//	...
//	election, err := tenure.New(store, "nightly", tenure.Config{})
//	...
//	err = election.Run(ctx, jobs.Lead)
//
// A tick is a job and a planned instant. By default a tick runs at most once; with AtLeastOnce one
// whose leader died in the middle runs again. docs/schedule.md has the promise, its conditions, and
// the rules for daylight saving.
//
// Once is for jobs that something else starts at each tick, such as a crontab on each machine. It
// runs the tick in one of these processes.
package schedule
