// Package fleet lets one process take part in many elections, such as ten thousand, and spreads
// their leadership over its members. A member is one process with a [Fleet]. Use it for shards or
// queues that each need one owner; for a few elections a tenure.Group is enough.
//
//	f, err := fleet.New(store, "workers", fleet.Config{
//		Election:  tenure.Config{ID: "node-1", Lease: 30 * time.Second},
//		Elections: names,
//		Spread:    true,
//	})
//	...
//	err = f.Run(ctx, tenure.Lead(func(ctx context.Context, t *tenure.Term) error {
//		// This process leads t.Election() until ctx ends. Return when it does.
//	}))
//
// # Assignment
//
// With [Config.Spread] each member takes a seat. A seat is one more election, such as
// "workers/members/7", which its member leads. So every member sees all others: one that dies loses
// its seat, and one that ends gives it back. From the list of taken seats and the names of the
// elections, every member computes the same assignment. It assigns each member at most an equal
// share plus 5 %, or an equal share rounded up if this is more. Few elections change hands when a
// member comes or goes. The assignment is the Nominator of each election. The assigned member
// claims first. If it does not, another member claims after [tenure.Tuning.Precedence]. A leader
// that is no longer assigned finishes its work and hands over.
//
// # The cost of a wrong list
//
// A wrong list costs time, and no more: the lease of each election prevents two leaders, whatever
// the assignment says. Members that see different seats, or have different elections, disagree only
// about which member claims first. If an election is assigned to no member, or to an absent one,
// another member claims it after the Precedence. The default is 1 s on a store that pushes changes,
// and a lease on one that is polled. An assigned member that comes later asks for the election
// after campaigning for two leases.
//
// # Order
//
// A member that ends gives its seat back first, so that the others know the new assignment, and
// then hands over its elections. If a member crashes, the others notice it as soon as the lease of
// its seat is over. That lease is by default half as long as those of its elections. So when those
// leases end, the elections go straight to the members that will keep them. Elections are handed
// over to a new member only after [Config.Settle], so that brief arrivals and departures move
// nothing. Each member hands over at most [Config.HandOvers] elections at a time.
package fleet
