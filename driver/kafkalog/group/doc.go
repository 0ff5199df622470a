// Package group lets a consumer group of Kafka nominate the leader of an election. Use it if
// something else depends on the owner of a partition, if operators move leadership through the
// group, or in place of goNELI, a library that elects by a consumer group.
//
//	g, err := group.Join(ctx, connection, group.Config{Name: "billing"})
//	cfg := tenure.Config{Nominator: g, Metadata: group.Metadata("billing")}
//	e, err := tenure.New(store, "billing", cfg)
//
// All candidates join one group; the owner of partition 0 of its topic is the nominee. The first
// member gets the partition and keeps it when others join or leave. The partition goes to another
// member when its owner leaves ([Group.Close]) or is silent for SessionTimeout.
//
// # It is not a lease
//
// Brokers give a silent owner's partition to the next owner without the first one's consent, and
// the first one learns of that only when it reaches them again. So two members may be the nominee
// at once, or none. Neither does harm: the election's lease decides which member leads, and a
// nomination only orders the claims. If a group is stuck, the election has no nominee. The
// candidates then claim without one after tenure.Config's Precedence; with NomineeOnly they wait
// without limit.
//
// # When a nomination ends
//
// It ends with the first of these events:
//   - the group gives the partition to another member, or removes this member;
//   - 19/20 of SessionTimeout have passed since this member sent the last request that the
//     coordinator answered as to a member. Of this machine's monotonic clock and wall clock, the
//     one that moved further counts;
//   - Close.
//
// Only an answered heartbeat resumes a nomination that ended by time. A process that was stopped
// finds it ended when it goes on. The leader is then asked to finish (tenure.ErrNominationLost) and
// releases its lease; the group does not wait for that. The next owner is named at once and is
// elected when the lease is released or over: the lease keeps terms apart, and the group need not
// wait. In goNELI a callback that blocks makes the group wait instead, and if it blocks for too
// long, the group names the next owner all the same.
//
// # What it does not do
//
// Nothing is consumed, committed or written, and no offsets are looked up. The topic may have any
// number of partitions, any retention and cleanup, and may be deleted at any time: the subscription
// only names it. Members of one group must name the same one. Ordinary consumers, goNELI's among
// them, cannot be members of the same group: the brokers refuse the kind that comes second, and
// Join reports that.
//
// # Rights
//
// A member needs Read on the group and Describe on the topic; Create on the topic lets Join create
// it.
//
// # Cost
//
// A member is one client, three goroutines of its own and a request every Heartbeat.
// docs/adr/0009-kafka-group.md has the figures, and explains why this package joins the group with
// its own requests and not through the library's consumer.
package group
