// Package neli is for programs that were written for goNELI. It has the same names, over elections
// of Tenure. A program changes its import:
//
//	import goneli "github.com/tenure-go/tenure/compat/neli"
//
// Processes of one consumer group are candidates, and the owner of partition 0 of LeaderTopic has
// precedence. But only a lease in a separate log, LeaderTopic + ".log", makes a process the leader.
// When the barrier receives [LeaderAcquired], the process was elected, and no other process is
// elected before its lease has expired or was released. docs/neli.md describes the move step by
// step, and lists each difference.
//
// # Which goroutine calls the barrier
//
// Pulse calls the barrier, in its caller's goroutine: one of the program's, or that of Background.
// Close calls the barrier, too, and no other method does. There is one call at a time, and no lock
// is held, so a barrier may call any method. But Close waits up to 10 s for the barrier and for a
// task of Background. So a call of Close from within one of them takes 10 s and returns an error.
//
// Safety does not depend on Pulse. The lease is renewed, and expires, without it. IsLeader, Token
// and the contexts of Term are always correct, however long ago Pulse was called. Pulse only
// reports the changes.
//
// # Fatal errors
//
// Pulse returns an error, and the Pulser of Background ends with it, if the instance was closed
// (ErrNonLivePulse), or if it can never lead as it is configured:
//
//   - the brokers refuse the user, or a right is missing, before the first successful read (the
//     error wraps driver.ErrDenied);
//   - a topic has settings that would allow two leaders, or cannot be created;
//   - the group refuses the member, for example because its session timeout is outside the brokers'
//     bounds;
//   - candidates of another group take part in this election;
//   - Configure made settings that the election does not accept.
//
// A fatal error stays: each later Pulse returns it, until Close. After any other error the instance
// tries again. While no broker answers, it logs a warning and keeps trying, its leadership ends
// with the lease, and Pulse returns false without an error.
package neli
