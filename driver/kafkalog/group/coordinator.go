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
