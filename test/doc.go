// Package test is empty. Its module holds the tests and commands that need real servers and real
// processes, so that the other modules do not depend on them.
//
//	battery     injects process, network and store faults into tenure run
//	bench       measures elections of separate processes on each store, and counts two leaders
//	chaos       conformance, linearizability, and elections whose NATS server is killed
//	checks      runs the steps of .ci/run and .ci/soak
//	dashboard   the dashboard in a real browser
//	fenced      writes to an SQL database that refuses those of an old leader
//	fencednats  messages to NATS streams that refuse those of an old leader
//	kafka       conformance, linearizability and elections on Kafka brokers that fail and move
//	metrics     the alerts and the Grafana board, with a real Prometheus
//	nats        elections on a cluster of three NATS servers, under every fault
//	prose       checks the words and the width of comments and docs
//	recipes     the recipes of deploy, and every command line in the documents
//	s3          conformance and linearizability on servers of object storage
//	sql         conformance, linearizability, elections and fences on SQL databases
//	internal    shared parts: servers as processes, relays, leaders that ask whether they may act
package test
