// Command bench measures elections of separate processes on real servers, and judges whether two
// led at once.
//
//	go run ./test/bench                 every row, in more than an hour
//	go run ./test/bench -quick          fewer repetitions, shorter leases, several at the same time
//	go run ./test/bench -quick -brokers the same with real Kafka brokers
//	go run ./test/bench -row crash,stop these rows; -row s3 those of object storage; -rows lists
//	                                    all rows
//	go run ./test/bench -runs 20        20 runs of each fault, cut and pause
//	go run ./test/bench -timeout 25m    fail if the rows take longer
//	go run ./test/bench -markdown       the table as in docs/results
//
// The rows are a matrix: each experiment (crash, stop, cut, ...) has a file, and each site (a store
// on servers of its own) has a file that starts the servers, connects candidates to them, and lists
// its experiments with their settings and bounds. A row is an experiment at a site.
//
// The command starts itself again for the NATS servers (file storage, loopback) and for each
// candidate. Object storage is versitygw over a directory. The first run installs versitygw, which
// takes a few minutes. Kafka is three brokers, which need Java 17, and Maven for the first run; a
// quick run uses kfake. Every process stamps its acts with CLOCK_MONOTONIC, which is one clock for
// all processes of a machine. It reports on a pipe, which outlives a killed process.
//
// The exit code is 1 if two led at once, if a token fell, if a leader was elected before the last
// lease had ended, if a control found nothing, or if a row could not be measured. A missed bound on
// time never fails the command, because other work on the machine can cause it. Neither does a row
// in which leaders lost their leases because the machine was busy.
package main
