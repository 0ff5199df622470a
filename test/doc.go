// Package test is nothing to import: this module holds what needs real servers and real processes,
// so that the others need neither.
//
//	battery     injects process, network and store faults into tenure run
//	bench       measures elections of separate processes on each store, and counts two leaders
//	chaos       conformance, linearizability, and elections whose NATS server is killed
//	checks      runs the steps of .ci/run and .ci/soak
//	fenced      writes to an SQL database that refuses those of an old leader
//	fencednats  messages to NATS streams that refuse those of an old leader
//	kafka       conformance, linearizability and elections on Kafka brokers that fail and move
//	nats        elections on a cluster of three NATS servers, under every fault
//	prose       checks the words and the width of comments and docs
//	recipes     the recipes of deploy, and every command line in the documents
//	s3          conformance and linearizability on servers of object storage
//	internal    what these share: servers as processes, relays, leaders that ask whether they may act
package test
