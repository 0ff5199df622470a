// Package identity finds out whether connections lead to the same stream. Names do not show that,
// because two clusters may have buckets, streams and servers of the same names; a stream is
// identified by the time at which it was created. A candidate that went on with the stream of
// another cluster would be a second leader. So the store checks the identity after each reconnect,
// and an inspection asks all servers that a program was given.
package identity
