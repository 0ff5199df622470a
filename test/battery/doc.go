// Command battery injects process, network and server faults into `tenure run`, with real processes
// and a real server, and checks that two of the commands that it runs never work at once.
//
//	go run ./test/battery                  every row once, and ten minutes of random faults
//	go run ./test/battery -runs 20         every row twenty times
//	go run ./test/battery -quick           every row once, without those that only measure, at the
//	                                       same time, and a few seconds of random faults: less than
//	                                       three minutes
//	go run ./test/battery -store postgres  on PostgreSQL; mariadb and sqlite are also possible
//	go run ./test/battery -row 'crash.*'   the rows that this expression matches as a whole; -rows
//	                                       lists them
//	go run ./test/battery -timeout 20m     give up after this time; an event that has not happened
//	                                       by then counts as failed
//	go run ./test/battery -markdown        the tables as in docs/results
//	go run ./test/battery -keep DIR        keep journals, logs, binaries in a new directory in DIR
//
// Each run has a server of its own, NATS by default, and three candidates: tenure commands, built
// from this source, each with a TCP relay of its own. A candidate that leads runs a worker. The
// worker writes each of its acts into one file, with CLOCK_MONOTONIC and its token.
// internal/witness judges that file twice: by the times, and by the order in the file, in which a
// resource would have received the acts. docs/testing.md defines the format.
//
// A row passes if no act with an older token follows the first act with a newer token, if tokens
// grow, if no process of an older worker is left when a new worker begins or when its tenure has
// ended, and if a next worker begins at all. The time until the next worker is shown with a
// verdict, but never fails the row. Each row that could pass by luck has controls: the same row
// with a tenure that has a flaw planted in its source. There a fault must show.
//
// The exit code is 1 if a row fails, or if a control shows no fault. Then the command prints the
// end of the journal and the logs of all processes. Only -timeout ends a run that takes too long.
//
// If the machine stands still for more than a tenth of the lease, a leader can lose its lease
// without a fault of tenure. If such a run is safe (acts, tokens, processes of a tenure that ended
// in order) but breaks another promise, it is repeated, up to eight times. After that it counts as
// late, unless a process is left over.
package main
