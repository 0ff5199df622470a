// Package election is for programs that were written for nats-kv-leader-elect. It has the same
// names, over elections of Tenure. A program changes its import:
//
//	import election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
//
//	elect, err := election.NewElection("member 1", "election", kv,
//		election.OnWon(handleBecomingLeader),
//		election.OnLost(handleLosingLeadership))
//	err = elect.Start(ctx) // blocks until stopped
//
// docs/nats-kv-leader-elect.md describes the move step by step, and lists each difference.
//
// # The lease
//
// The lease is a third of the bucket's TTL, and the leader renews it every third of the lease. A
// candidate is elected when the last leader has released its lease, or when the candidate has
// waited for the whole lease. By its own clock the last leader stops earlier than that, by a tenth
// of the lease and a margin. So when OnWon is called, there is no other leader any more, and no
// further pause is necessary. The TTL itself decides nothing.
//
// # Callbacks
//
// Start calls OnWon, OnLost and OnCampaign in its goroutine, one at a time. It holds no lock, so
// they may call any method. A slow callback delays only other callbacks: the lease is renewed, and
// expires, independently of them. OnLost follows each OnWon, also at a shutdown, and the lease is
// released only after OnLost has returned. After a panic in a callback the lease is not released.
// If the program recovers from the panic, the lease runs out.
package election
