// Package fleet has one process take part in many elections, ten thousand say, and spreads their leadership over the members.
//
//	f, err := fleet.New(store, "workers", fleet.Config{
//		Election:  tenure.Config{ID: "node-1", Lease: 30 * time.Second},
//		Elections: names,
//		Spread:    true,
//	})
//	...
//	err = f.Run(ctx, func(ctx context.Context, t *tenure.Term) error {
//		// This process leads t.Election() until ctx ends. Return when it does.
//	})
//
// # Who is meant to lead what
//
// With [Config.Spread] each member takes a seat, which is an election of its own beside the others ("workers/members/7"), and so sees
// who else there is: one that dies loses its seat, one that ends gives it back. From the list of taken seats and the names of the
// elections every member computes the same assignment, in which nobody has more than its share and 5 %, or its share rounded up, and in which few
// elections change hands when a member comes or goes. It is the Nominator of each election: the member that is meant to lead
// claims first, others [tenure.Config.Precedence] later if it does not, and a leader that is not meant to lead any more finishes its work and hands over.
//
// # What a wrong list costs
//
// Time, and no more. What keeps two leaders apart is the lease of each election, and the assignment has no part in it: members that
// see different seats, or have different elections, disagree about who claims first. An election that nobody is meant to
// lead, or somebody who is not there, is led by another member after the precedence, a second by default; the one that is meant to, once it is
// there, asks for it after two leases.
//
// # In order
//
// A member that ends gives its seat back first, so that all others know who is to lead what it led, and then hands over. One that has crashed is known to be
// gone when the lease of its seat is over, half of the others' by default, so that its elections, when their leases are over, go straight to those who
// are to keep them. One that comes is waited for, [Config.Settle], so that what comes and goes moves nothing; and all hand over
// no more than [Config.HandOvers] elections at a time.
package fleet
