// Package chaos runs elections on one NATS server process and injects faults of servers. It has
// only tests.
//
// The test binary starts itself again as the server. Most candidates live in the test, each on a
// connection of its own.
package chaos
