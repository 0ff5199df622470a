// Package slots lets at most N members lead at any moment, each with its own slot number and token.
// Use it for work that several copies of a service may do at once, but not more than N: calls to a
// service with a rate limit, heavy batches, or numbered shards. A member is one process with a
// [Member].
//
//	m, err := slots.New(store, "crawl", slots.Config{
//		Election: tenure.Config{ID: "node-1"},
//		Slots:    3,
//	})
//	...
//	err = m.Run(ctx, tenure.Lead(func(ctx context.Context, t *tenure.Term) error {
//		// This process has slot slots.Number(t) until ctx ends. Return when it does.
//	}))
//
// # Slots
//
// Each slot is an election, such as "crawl/slots/1", with a record, a lease and tokens of its own.
// A slot has at most one leader, on the conditions of docs/guarantees.md. So members that all have
// the same N have at most N leaders at any moment. Tokens of different slots are not comparable: a
// resource keeps the highest one of each slot.
//
// A member follows all slots, and campaigns for a free one as long as it leads fewer than
// Config.PerMember. It never campaigns for more at a time than it may still lead, because two
// claims could both succeed. If another member gets the slot, it goes on to the next free one. Each
// member prefers the free slots in an order of its own, by a hash of its ID, so that members that
// start together rarely claim the same slot. All slots are equal: the lowest one is not taken
// first.
//
// # Members with different N
//
// Each leader publishes its N in the record of its slot, under [MetadataKey]. Let n be the N of a
// member that leads some slot. Its slot has a number of at most n (rule 1). The rules are:
//
//  1. A member claims no slot above its own N.
//  2. It claims no slot above the N in the record of any lower slot. It asks its own work to
//     finish (tenure.ErrIneligible) as soon as it sees there an N below its slot.
//  3. It claims no slot, and asks its own work to finish, while it has not seen the record of each
//     lower slot for a lease. A read counts from its start. Bytes that it cannot read as a record
//     are not seen.
//  4. If a leader vanishes without a release, its N stands for one more lease.
//
// The promise: when a member with n slots has led for one lease and FinishWithin, no member leads a
// slot above n, and there are at most n leaders, for as long as it leads. The lease and
// FinishWithin are those of the members with the larger N.
//
// The proof: let the record of that member be in the store from the moment t, in slot j, so j is at
// most n. Let another member lead slot k above n, so j is lower than k. From t on, each read of
// slot j shows n, as long as that member leads: only it writes this record. Each read that began
// before t is a lease old at t + lease, by a clock that a leader uses (clock.Instant.LeaderSince).
// So at t + lease the other member has either seen n (rule 2) or not seen slot j for a lease
// (rule 3). In both cases its election has asked the work to finish, and ends the term FinishWithin
// later at the latest. The same decision precedes each claim, so no new leader of slot k follows.
// Rule 4 is for the time in which a member with a faster clock counts the lease in slot j as over
// before its leader does.
//
// In true time the lease is longer by Tuning.Drift at most. Three times are added: by which a push
// or a read shows an older state than that of the store; by which timers are late; and, if the
// process of the other member is paused when it should leave, what is left of its lease, and
// FinishWithin from when it continues.
//
// The number of slots thus shrinks when the first member with a smaller N gets a slot, and grows
// when the last one has released its slot. A member with a smaller N that waits for a slot changes
// nothing.
package slots
