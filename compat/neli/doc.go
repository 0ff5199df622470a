// Package neli elects leaders for programs that were written for goNELI: the same names, over
// elections of Tenure.
//
//	import goneli "github.com/tenure-go/tenure/compat/neli"
//
// Processes of one consumer group are candidates, and the owner of partition 0 of LeaderTopic has
// precedence. A lease in a log of its own, LeaderTopic + ".log", makes it the leader: it was
// elected when [LeaderAcquired] is called, and no other process is before its lease has expired or
// is released. docs/neli.md says how to move over, and lists each difference.
//
// # Which goroutine calls the barrier
//
// Pulse calls the barrier, and so the goroutine that pulses: that of the program, or that of
// Background. Only Close calls it as well. There is one call at a time, and no lock is held, so
// that a barrier may call any method; Close waits for the barrier and for a task of Background, for
// 10 s at most, so from within one of those it takes 10 s and returns an error.
//
// Safety does not wait for Pulse. The lease is renewed, and expires, by itself: IsLeader, Token and
// the contexts of Term are right at the time of the question, whenever Pulse was called last. Pulse
// only brings the news.
//
// # Fatal errors
//
// Pulse returns an error, and the Pulser of Background ends with it, if the instance was closed
// (ErrNonLivePulse), or if it can never lead as it is configured:
//
//   - the brokers refuse the user, or a right is missing, before the first successful read (the
//     error wraps driver.ErrDenied);
//   - a topic has settings that would make two leaders, or cannot be created;
//   - the group refuses the member, as for a session timeout that is out of the brokers' bounds;
//   - candidates of another group take part in this election;
//   - Configure made settings that the election does not accept.
//
// A fatal error stays: each later Pulse returns it, until Close. All other errors pass. While no
// broker answers there is a warning in the log and another try, leadership ends in time, and Pulse
// returns false without an error.
package neli
