// Package witness stands outside of an election, records what leaders do, and judges whether two
// of them led at the same time.
package witness
