// Command bench measures elections of separate processes on real servers, and counts moments with two leaders.
//
//	go run ./test/bench                 every row, in more than an hour
//	go run ./test/bench -quick          fewer repetitions, shorter leases, and several side by side
//	go run ./test/bench -quick -brokers also what only real brokers can show
//	go run ./test/bench -row crash,stop these rows; -row s3 those of object storage, -row kafka those of Kafka; -rows lists them
//	go run ./test/bench -runs 20        as many runs where a fault befalls a leader or a broker on Kafka
//	go run ./test/bench -timeout 25m    give up after this time; what has not happened by then is an error
//	go run ./test/bench -markdown       the table as docs/ holds it
//
// The command starts itself again for the NATS server (file storage, one replica, loopback) and for each candidate. Object
// storage is versitygw over a directory, installed at the first need, which takes a few minutes once; on servers that fail
// on purpose it is in memory. Kafka is three brokers, which need Java 17 and Maven once; in a quick run it is kfake, and a few measures
// need real brokers, which -brokers starts. Every process stamps what it does by CLOCK_MONOTONIC, which is one clock for all processes of a
// machine, and reports on a pipe, which outlives a process that is killed.
//
// It exits 1 if two led at once, if a leader was elected before the last lease had run out, or if a row could not be measured, for
// an error or within -timeout, which is all that ends a wait. Bounds on time depend on what else the machine does: they are shown with a
// verdict, and never fail the command. Neither does a measure that a busy machine spoilt by costing leaders their leases.
package main
