// Package protocol decides what one member of an election does. It is pure: no I/O, no goroutine,
// no clock, no randomness of its own. The caller reports each observation and its time. The package
// returns what to read or write next, when to call again, and what changed.
//
// docs/protocol.md has the idea, the states, a glossary, and the rules that comments cite (L1 to
// L16, L3a, H1 to H3), each with its timeline or test. testdata/00-one-election.txt is the first
// timeline to read: one election from beginning to end.
//
// In short: the cell in the store alone decides which member leads, and it changes only by
// compare-and-swap. A leader's deadline is the time before it sent a write, plus the lease, minus a
// margin. A follower starts to wait after it saw that write, and waits for the whole lease. So the
// deadline comes first, whatever the faults of the network and of wall clocks (docs/guarantees.md
// has the conditions).
//
// # Files
//
//   - machine.go: the states, and Next, which decides. Read it first.
//   - view.go: the cell as it was last seen, and how far it is trusted (L2, L3, L3a, L10).
//   - lease.go: this member's own term and pending writes (L1, L4).
//   - decode.go: from bytes to a cell.
//   - outcome.go, rumor.go: how answers and pushes change the view (L7, L13).
//   - candidate.go, leader.go, release.go: the decisions in each state (L9, L10, L11, L16, H1).
//   - follow.go: when to read. due.go: instants, and which clock counts (L5).
//   - config.go: the margin and other bounds (L3).
//   - eligible.go, nominee.go, priority.go, offer.go: which member should lead (L13, H2, H3).
//   - wait.go: why a candidate waits, for people.
//   - reset.go, credible.go: damaged records (L15).
//   - transition.go: the changes that the caller is notified of. moment.go: a wall-clock time.
package protocol
