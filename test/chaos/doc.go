// Package chaos holds elections on a server process and injects the faults of servers. All of it is
// tests.
//
// The servers are processes of their own, started from this very test program; candidates live in
// the test, each on a connection of its own. Every wait is for an event that must happen, with a
// limit that is many times its usual time.
package chaos
