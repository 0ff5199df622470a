// Command bench measures elections of separate processes on a real server, and counts moments with two leaders.
//
//	go run ./test/bench                 every row, in six minutes
//	go run ./test/bench -quick          fewer repetitions, a minute and a half
//	go run ./test/bench -row crash      one row; -rows lists them
//	go run ./test/bench -markdown       the table as docs/ holds it
//	go run ./test/bench -strict         exit 1 also where a bound on time is missed
//
// The command starts itself again for the NATS server (file storage, one replica, loopback) and for each candidate. Every
// process stamps what it does by CLOCK_MONOTONIC, which is one clock for all processes of a machine, and reports on a
// pipe, which outlives a process that is killed.
//
// It exits 1 if two led at once, if a leader was elected before the last lease had run out, or if a row could not be
// measured. Bounds on time depend on what else the machine does; they are shown, and judged only with -strict.
package main
