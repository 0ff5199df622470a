// Package chaos holds elections on a server process and does to it what happens to servers. All of it is tests.
//
// The servers are processes of their own, started from this very test program; candidates live in the test, each on a
// connection of its own. Every wait is for something that must happen, with a limit that is many times what it takes.
package chaos
