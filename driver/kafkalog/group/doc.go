// Package group nominates by a consumer group of Kafka, which is how NELI elects.
//
//	g, err := group.Join(ctx, connection, group.Config{Name: "billing"})
//	e, err := tenure.New(store, "billing", tenure.Config{Nominator: g, Metadata: group.Metadata("billing")})
//
// All candidates join one group; who owns partition 0 of its topic is the nominee. The first member gets it and keeps it when
// others join or leave. It goes on to another member when its owner leaves ([Group.Close]) or is silent for SessionTimeout.
//
// # It is no lease
//
// Brokers give a partition to the next owner without the consent of one that they do not hear of, and that one learns of it when it
// hears of them again. So two members may be the nominee at once, or none. Both must be harmless, and are: the log's lease decides who
// leads, and a nomination says only who is to ask for it. A group that is stuck leaves the election without a nominee,
// and the candidates go on without one after tenure.Config's Precedence; with NomineeOnly they wait, however long.
//
// # When a nomination ends
//
// Whichever comes first:
//   - the group gives the partition to somebody else, or this member's place away;
//   - a coordinator has not answered a request of this member as a member's for SessionTimeout less a twentieth, counted from
//     when the last request that it did answer was sent, on this machine's clocks, of which the one that ran furthest counts;
//   - Close.
//
// A nomination that ended by time is resumed by an answered heartbeat, and by nothing else. A process that was stopped finds
// it ended when it goes on. Whoever leads is then asked to finish (tenure.ErrNominationLost) and releases its lease; the
// group does not wait for that. The next owner is named at once and is elected when the lease is released or over: it is the lease
// that keeps terms apart, not the group's patience. In NELI a callback that blocks keeps the group waiting instead, and whoever
// blocks longer than the group waits is passed over all the same.
//
// # What it does not do
//
// Nothing is consumed, committed or written, and no offsets are looked up. The topic may have any number of partitions, any
// retention and cleanup, and may be deleted meanwhile: it is named in the subscription, and that is all. Members
// of one group must name the same one. Ordinary consumers, goNELI's among them, cannot be members of the same group: the brokers
// refuse whichever comes second, and Join says so.
//
// # Rights
//
// A member needs Read on the group and Describe on the topic; Create on the topic lets Join create it.
//
// # Cost
//
// A member is one client, three goroutines of its own and a request every Heartbeat. docs/adr/0009-kafka-group.md has the figures, and says why
// the group is joined by requests of this package's own and not by the library's consumer.
package group
