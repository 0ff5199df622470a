// Package election elects leaders for programs that were written for nats-kv-leader-elect: the same
// names, over elections of Tenure. A program moves by changing its import:
//
//	import election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
//
//	elect, err := election.NewElection("member 1", "election", kv,
//		election.OnWon(handleBecomingLeader),
//		election.OnLost(handleLosingLeadership))
//	err = elect.Start(ctx) // blocks until stopped
//
// docs/nats-kv-leader-elect.md says how to move over, and lists each difference.
//
// # The lease
//
// A leader holds a lease of a third of the bucket's TTL, and renews it each third of that. A
// candidate is elected after it has waited for the lease of the last leader, or has seen it
// released. The last leader stops earlier by its own clock: by a tenth of a lease and a margin for
// its clock. So OnWon is called when nobody leads any more, without a pause of its own. The TTL
// itself decides nothing.
//
// # Callbacks
//
// OnWon, OnLost and OnCampaign are called by Start, in its goroutine, one at a time and with no
// lock held, so that they may call any method. They delay one another and nothing else: the lease
// is renewed, and expires, by itself. OnLost follows each OnWon, at a shutdown too, and the lease
// is released only after it has returned. A callback that panics ends the program, or the function
// that recovers; nothing is released then.
package election
