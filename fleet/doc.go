// Package fleet lets one process take part in many elections, such as ten thousand, and spreads
// their leadership over the members. Use it for shards or queues that each need one owner; for a
// few elections a tenure.Group is enough.
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
// With [Config.Spread] each member takes a seat, which is an election of its own beside the others
// ("workers/members/7"). So it sees the other members: one that dies loses its seat, one that ends
// gives it back. From the list of taken seats and the names of the elections every member computes
// the same assignment. In it no member has more than its share and 5 %, or its share rounded up,
// and few elections change hands when a member comes or goes. The assignment is the Nominator of
// each election: the assigned member claims first, others [tenure.Tuning.Precedence] later if it
// does not, and a leader that is no longer assigned finishes its work and hands over.
//
// # The cost of a wrong list
//
// A wrong list costs time, and no more. The lease of each election keeps leaders apart, and the
// assignment has no part in it. Members that see different seats, or have different elections,
// disagree about the first claim. An election that is assigned to no member, or to an absent one,
// is led by another member after the precedence, a second by default. The assigned member, once it
// is there, asks for it after two leases.
//
// # Order
//
// A member that ends gives its seat back first, so that all others know the new assignment of its
// elections, and then hands over. A crashed member is known to be gone when the lease of its seat
// is over, which is half as long as a lease of its elections by default. So its elections, when
// their leases are over, go straight to the members that are to keep them. A new member is waited
// for, [Config.Settle], so that brief arrivals and departures move nothing. All members hand over
// at most [Config.HandOvers] elections at a time.
package fleet
