package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// protocol is the name of this group's way to decide. Consumers of other kinds have other names, so
// the brokers keep the kinds apart: they refuse the one that comes second.
const protocol = "tenure"

// kind is Kafka's word for a group that shares out partitions, which its tools can describe.
const kind = "consumer"

// partition is the one whose owner is the nominee.
const partition = 0

// claim returns a member's statement about itself: its subscription, and whether it owns the
// partition, as of which generation of the group.
func claim(topic string, owns bool, generation int32) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Generation = 3, []string{topic}, generation
	if owns {
		m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: topic, Partitions: []int32{partition}}}
	}
	return m.AppendTo(nil)
}

// claimed reads it. A member with an unreadable statement claims nothing.
func claimed(topic string, metadata []byte) (subscribed, owns bool, generation int32) {
	m := kmsg.NewConsumerMemberMetadata()
	if m.ReadFrom(metadata) != nil {
		return false, false, -1
	}
	for _, t := range m.Topics {
		subscribed = subscribed || t == topic
	}
	for _, t := range m.OwnedPartitions {
		owns = owns || t.Topic == topic && len(t.Partitions) > 0
	}
	return subscribed, owns, m.Generation
}

// plan gives the partition to the member that owned it last. Without such a member, it goes to the
// one that has been in the group before; of several, to the one with the first id. So a member that
// joins or leaves moves nothing, unless it leaves as the owner, and an owner that an operator
// removes is not named again when it comes back. No member gets another partition. It returns how
// many members subscribe to something else, by mistake.
func plan(topic string, members []kmsg.JoinGroupResponseMember) (all []kmsg.SyncGroupRequestGroupAssignment, strangers int) {
	best := rank{}
	for _, m := range members {
		r := rank{id: m.MemberID}
		if r.subscribed, r.owns, r.generation = claimed(topic, m.ProtocolMetadata); !r.subscribed {
			strangers++
		} else if r.before(best) {
			best = r
		}
	}
	for _, m := range members {
		all = append(all, kmsg.SyncGroupRequestGroupAssignment{
			MemberID: m.MemberID, MemberAssignment: assignment(topic, best.subscribed && m.MemberID == best.id),
		})
	}
	return all, strangers
}

// rank is the criteria for one member.
type rank struct {
	id               string
	subscribed, owns bool
	generation       int32
}

func (r rank) before(other rank) bool {
	switch {
	case !other.subscribed:
		return true
	case r.owns != other.owns:
		return r.owns
	case r.generation != other.generation:
		return r.generation > other.generation
	}
	return r.id < other.id
}

func assignment(topic string, owns bool) []byte {
	var a kmsg.ConsumerMemberAssignment
	if owns {
		a.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: topic, Partitions: []int32{partition}}}
	}
	return a.AppendTo(nil)
}

// assigned reads it.
func assigned(topic string, data []byte) (bool, error) {
	if len(data) == 0 {
		return false, nil
	}
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(data); err != nil {
		return false, err
	}
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			if t.Topic == topic && p == partition {
				return true, nil
			}
		}
	}
	return false, nil
}
