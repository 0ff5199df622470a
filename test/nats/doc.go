// Package nats holds elections in replicated buckets of a cluster of three NATS servers and does to
// the servers what happens to servers. All of it is tests.
//
// The servers are processes of their own; candidates live in the test, each on a connection of its
// own. All of it needs the tag integration; with -short most faults are left out.
package nats
