// Package protocol decides what one member of an election does. It is pure: no I/O, no goroutine, no clock, no randomness
// of its own. It is told what was seen and when, and says what to read or write next, when to be woken, and what changed.
//
// The rules that comments cite (L1 to L16, H1 and H2) are defined in docs/protocol.md, with their reasons and with what
// shows each. testdata/00-one-election.txt is the first timeline to read: one election from beginning to end.
//
// # What is authoritative
//
// The cell in the store alone says who won. It holds a record; a record changes only by compare-and-swap on the version
// that the writer saw, so all states of a cell form one chain, and of several writes that expect the same version at most
// one is ever in it.
//
// # The trust window
//
// A leader trusts its term until a deadline on its own clock: the moment before it sent the write that is now in the cell,
// plus the lease stated in that write, less a margin. A follower that sees a holder's write waits that write's lease from
// after it saw it. The leader's window began before the write was sent and the follower's wait began after it could be
// read, so the window closes first, whatever the network did and whatever the time of day is on either machine. Rates of
// clocks are all that is compared, and the margin covers them (rules L1 to L3).
//
// # States
//
//	Idle ──Campaign──> Candidate ──claim applied──> Leading ──Finish──> Releasing ──> Idle or Candidate
//	                       │                           │ deadline, deposed,      ^
//	                       └──Withdraw──> Releasing    │ vanished, overdue       │
//	                                                   └──────> Ended ──Finish───┘
//
// Ended means that the term is over and the work is not known to have stopped: until Finish says so this member neither
// claims nor releases anything.
//
// # Files
//
// Read machine.go first: its function Next decides. view.go is what is known of the cell, lease.go what is held of it. outcome.go
// learns from answers and pushes. candidate.go, leader.go and release.go decide in their states; follow.go says when to read.
package protocol
