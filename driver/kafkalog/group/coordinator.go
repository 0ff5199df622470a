package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// nominee is whether this member is the nominee, and the watches of that.
type nominee struct {
	usable time.Duration // how long an answer is valid, from when its request was sent
	// a member that is not the nominee may lead only while its place is confirmed
	gated   bool
	changed chan struct{} // capacity 1: a watch may need a call

	mu       sync.Mutex
	assigned bool // the group gave partition 0 to this member
	// since is when the last request was sent that the coordinator answered to a member; zero: none
	// counts.
	since time.Time
	// confirmed is when the last request was sent that the coordinator answered to a member of a
	// group that is not about to be shared out; zero: none counts. A group that is about to be
	// shared out removes a member that does not join again in time.
	confirmed time.Time
	ended     bool
	timer     *time.Timer
	watches   []*watch
}

type watch struct {
	see  func(bool)
	told bool // the first call was made
	last bool
	may  bool // the last mayLead
}

func newNominee(usable time.Duration, gated bool) *nominee {
	n := &nominee{usable: usable, gated: gated, changed: make(chan struct{}, 1)}
	n.timer = time.AfterFunc(usable, n.ring)
	n.timer.Stop()
	return n
}

// wake makes the goroutine of tell look.
func (n *nominee) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// assign records the group's decision, from the answer to a request that was sent then.
func (n *nominee) assign(yes bool, sent time.Time) {
	n.mu.Lock()
	n.assigned = yes
	n.mu.Unlock()
	n.answered(sent, true)
}

// answered records that the coordinator treated the sender of a request that was sent then as a
// member, and whether it confirmed a place that lasts for a session.
func (n *nominee) answered(sent time.Time, confirmed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sent.After(n.since) {
		n.since = sent
	}
	if confirmed && sent.After(n.confirmed) {
		n.confirmed = sent
	}
	n.arm()
	n.wake()
}

// arm sets the timer to the next end of an answer. It is called under the lock.
func (n *nominee) arm() {
	for _, sent := range []time.Time{n.confirmed, n.since} { // the latter is never earlier
		if left := n.remaining(sent); left > 0 && !n.ended {
			n.timer.Reset(left)
			return
		}
	}
}

// ring is called when an answer has expired.
func (n *nominee) ring() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arm()
	n.wake()
}

// lose records that the group gave this member's place away.
func (n *nominee) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assigned, n.since, n.confirmed = false, time.Time{}, time.Time{}
	n.wake()
}

// end is final.
func (n *nominee) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	n.timer.Stop()
	n.wake()
}

// owned reports whether partition 0 was given to this member and not taken away, at any age.
func (n *nominee) owned() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.assigned
}

// holds computes the answer from the clock. It is called under the lock.
func (n *nominee) holds() bool { return n.assigned && !n.ended && n.remaining(n.since) > 0 }

// admits reports whether this member may lead: anyway, as the nominee, or because it has a place in
// the group. While it has, brokers admit no member of another kind. It is called under the lock.
func (n *nominee) admits() bool {
	return !n.gated || n.holds() || !n.ended && n.remaining(n.confirmed) > 0
}

// remaining returns how long an answer to a request that was sent then is still valid.
func (n *nominee) remaining(sent time.Time) time.Duration { return n.usable - elapsed(sent) }

// elapsed returns the larger of the times by the monotonic clock and the wall clock: the first does
// not count the time that a machine sleeps.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

func (n *nominee) now() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.holds()
}

func (n *nominee) mayLead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.admits()
}

// watch registers see. Stop may be called from it.
func (n *nominee) watch(see func(bool)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		go see(false)
		return func() {}
	}
	w := &watch{see: see}
	n.watches = append(n.watches, w)
	n.wake()
	return func() { n.unwatch(w) }
}

func (n *nominee) unwatch(w *watch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watches = slices.DeleteFunc(n.watches, func(other *watch) bool { return other == w })
}

// tell calls the watches that do not know the present state, without the lock, until the nomination
// has ended and they know.
func (n *nominee) tell() {
	for range n.changed {
		w, state, over := n.next()
		for ; w != nil; w, state, over = n.next() {
			w.see(state)
		}
		if over {
			return
		}
	}
}

// next returns a watch to call, and the state. The watch counts as called from here on. Without a
// watch, over reports that there will never be another.
func (n *nominee) next() (w *watch, state, over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	state, may := n.holds(), n.admits()
	for _, w := range n.watches {
		if !w.told || w.last != state || w.may != may {
			w.told, w.last, w.may = true, state, may
			return w, state, false
		}
	}
	return nil, state, n.ended
}

// MetadataKey is the key under which a leader publishes the consumer group that nominates it.
const MetadataKey = "kafka.group"

// ErrOtherGroup reports that another consumer group nominates the leader of the election.
var ErrOtherGroup = errors.New("two consumer groups nominate for one election")

// Metadata returns an addition to the metadata of a candidate that the group of this name
// nominates, for CheckLeader.
func Metadata(name string) map[string]string { return map[string]string{MetadataKey: name} }

// CheckLeader checks a leader's metadata, for a candidate that the group of this name nominates. It
// returns an error that wraps ErrOtherGroup if another group nominates the leader. The error names
// both groups and the remedy. Each group then has its own nominee. The two nominees take the
// election from each other again and again, but never lead at the same time. A leader without a
// group is not an error.
func CheckLeader(name string, leader map[string]string) error {
	other := leader[MetadataKey]
	if other == "" || other == name {
		return nil
	}
	return fmt.Errorf("%w: this candidate is of group %q, and the leader of group %q: give all candidates of an election the same group, "+
		"and each group an election or a topic of its own", ErrOtherGroup, name, other)
}
