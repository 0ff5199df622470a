// Package test is nothing to import: this module holds what needs a real server and real processes, so that the others
// need neither.
//
//	bench    measures elections of separate processes on a server process, and counts two leaders
//	chaos    conformance, linearizability, and elections whose server is killed
//	kafka    conformance, linearizability and elections on Kafka brokers in this process that fail and move
//	fenced   writes to an SQL database that an old leader cannot make any more
package test
