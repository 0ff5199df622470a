package group

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errMoved ends a request whose coordinator is no longer believed to be one.
var errMoved = errors.New("the group's coordinator does not answer or is another")

// coordinator sends requests, one for each call, to the broker that coordinates the group, and
// notices when that is another.
type coordinator struct {
	client  *kgo.Client
	group   string
	timeout time.Duration

	mu    sync.Mutex
	seat  *seat // nil: not known
	asked int   // how often a broker was asked for the coordinator
}

// seat is one broker for as long as it is believed to be the coordinator.
type seat struct {
	node int32
	ctx  context.Context // ends with the belief
	stop context.CancelCauseFunc
}

// ask returns an error for every answer that is not a success; the answer comes with it.
func (c *coordinator) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	s, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	both, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.ctx, func() { stop(context.Cause(s.ctx)) })()
	answer, err := c.client.Broker(int(s.node)).Request(both, req)
	if err == nil {
		err = codeOf(answer)
	} else if cause := context.Cause(both); cause != nil {
		err = errors.Join(cause, err)
	}
	if answer == nil && ctx.Err() != context.Canceled || isMisdirected(err) {
		c.forget(s)
	}
	return answer, err
}

// isMisdirected reports whether the request went to a broker that is not the coordinator, or not
// yet.
func isMisdirected(err error) bool {
	return errors.Is(err, kerr.NotCoordinator) || errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress)
}

func codeOf(answer kmsg.Response) error {
	switch a := answer.(type) {
	case *kmsg.JoinGroupResponse:
		return kerr.ErrorForCode(a.ErrorCode)
	case *kmsg.SyncGroupResponse:
		return kerr.ErrorForCode(a.ErrorCode)
	case *kmsg.HeartbeatResponse:
		return kerr.ErrorForCode(a.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		return kerr.ErrorForCode(a.ErrorCode)
	}
	return broker.ErrAnswer
}

// find asks a broker for the coordinator, unless it is known: another broker each time, since a
// silent one does not help.
func (c *coordinator) find(ctx context.Context) (*seat, error) {
	s, broker := c.known()
	if s != nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = c.group, []string{c.group}
	answer, err := broker.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	found := answer.(*kmsg.FindCoordinatorResponse)
	node, code := found.NodeID, found.ErrorCode
	if len(found.Coordinators) > 0 {
		node, code = found.Coordinators[0].NodeID, found.Coordinators[0].ErrorCode
	}
	if err := kerr.ErrorForCode(code); err != nil {
		return nil, err
	}
	return c.believe(node), nil
}

// known returns the coordinator, or else a broker to ask for it.
func (c *coordinator) known() (*seat, *kgo.Broker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seat != nil {
		return c.seat, nil
	}
	all := append(c.client.DiscoveredBrokers(), c.client.SeedBrokers()...)
	c.asked++
	return nil, all[c.asked%len(all)]
}

func (c *coordinator) believe(node int32) *seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seat == nil {
		s := &seat{node: node}
		s.ctx, s.stop = context.WithCancelCause(context.Background())
		c.seat = s
	}
	return c.seat
}

// forget also ends the other requests to that broker: a join may wait for long.
func (c *coordinator) forget(s *seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.stop(errMoved)
	if c.seat == s {
		c.seat = nil
	}
}

// protocol is the name of this group's way to decide. Consumers of other kinds have other names, so
// the brokers keep the kinds apart: they refuse the one that comes second.
const protocol = "tenure"

// kind is Kafka's word for a group that shares out partitions, which its tools can describe.
const kind = "consumer"

// partition is the one whose owner is the nominee.
const partition = 0

// claim returns a member's statement about itself: the topic that it subscribes to, whether it owns
// the partition, and the generation of the group that both are about.
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
