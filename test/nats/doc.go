// Package nats runs elections in replicated buckets of a cluster of three NATS servers, and stops,
// kills, freezes and cuts off the servers. It has only tests.
//
// The servers are processes of their own. The candidates live in the test, each on a connection of
// its own. All tests need the tag integration. With -short most faults are left out.
package nats
