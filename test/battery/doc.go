// Command battery injects process, network and server faults into `tenure run`, with real processes
// and a real server, and checks that two of the commands that it runs never work at once.
//
//	go run ./test/battery                  every row once, and ten minutes of random faults
//	go run ./test/battery -runs 20         every row twenty times
//	go run ./test/battery -quick           every row once, but those that only measure, all side by
//	                                       side, and a few seconds of random faults: less than three
//	                                       minutes
//	go run ./test/battery -row 'crash.*'   the rows that this expression matches as a whole; -rows
//	                                       lists them
//	go run ./test/battery -timeout 20m     give up after this time; an event that has not happened by
//	                                       then counts as failed
//	go run ./test/battery -markdown        the tables as docs/ holds them
//	go run ./test/battery -keep DIR        keep journals, logs and binaries, in a new directory in
//	                                       this one
//
// Each run has a NATS server of its own and three candidates: the tenure command, built from here,
// each through a TCP relay of its own. They run a worker that writes each of its acts into one
// file, with CLOCK_MONOTONIC and its token. internal/witness judges that file, by the times and by
// the order in the file, in which a resource would have received the acts. docs/testing.md defines
// its format.
//
// A row passes if no act with an older token follows the first one with a newer token, if tokens
// grow, if no process of another candidate is left when a new worker begins, or when a tenure has
// ended, and if there is a next worker at all. The time until it begins is shown, with a verdict,
// and fails nothing. Each row that could pass by luck has controls: the same with a tenure that has
// a flaw planted in its source, where a fault must show.
//
// It exits 1 if any row does not pass, or a control does, and prints the end of that journal and
// the logs of all its processes. Only -timeout ends a run that goes on too long. If the machine
// stood still for more than a tenth of the lease, a leader may have lost the lease by that. A run
// in which another promise than those on acts, tokens and processes was broken then is played
// again, up to eight times, and in the end counts as late.
package main
