package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const plainSASL = "PLAIN"

// harness is on its own cluster.
func harness(t testing.TB) drivertest.Harness {
	t.Helper()
	c := start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "nobody", "nobody", may(kmsg.ACLOperationRead), may(kmsg.ACLOperationWrite)))
	ways := c.relays()
	h := drivertest.Harness{
		Patience: 5 * time.Minute,
		Store:    c.open(c.through(ways, as("admin"))),
		Peer:     c.open(c.direct(as("admin"))),
		Cut: func() func() {
			ways.Blackhole()
			return ways.Heal
		},
	}
	h.Denied = c.open(c.direct(as("nobody")))
	c.revoke("nobody")
	h.Delete = func(ctx context.Context, key string) error { return remove(ctx, h.Peer, key) }
	h.Recreate = func(context.Context) error {
		return errors.Join(c.DeleteTopic(topic), c.CreateTopic(topic, 1, nil))
	}
	return h
}

// may is a right to the topic.
func may(operation kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: operation, Allow: true}
}

// revoke removes all rights of a user.
func (c *cluster) revoke(user string) {
	c.tb.Helper()
	principal := "User:" + user
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	f.Operation, f.PermissionType, f.Principal = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny, &principal
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Filters = append(req.Filters, f)
	if _, err := req.RequestWith(within(c.tb), c.client(as("admin"))); err != nil {
		c.tb.Fatal(err)
	}
}

// remove removes a key as an operator does.
func remove(ctx context.Context, s driver.Store, key string) error {
	e, err := s.Read(ctx, key)
	if err != nil {
		return err
	}
	_, err = s.CompareAndSwap(ctx, key, e.Version, nil)
	return err
}

// TestFakeConformance runs alone, because it counts goroutines.
func TestFakeConformance(t *testing.T) { drivertest.Run(t, harness) }

func TestFakeElection(t *testing.T) { electiontest.RunInBubbles(t, harnessInABubble) }

// harnessInABubble is on its own cluster in virtual time.
func harnessInABubble(t testing.TB) drivertest.Harness {
	c := startVirtual(t, 1)
	open := func() *kafkalog.Store { return c.open(c.direct()) }
	h := drivertest.Harness{Store: open(), Peer: open()}
	h.Delete = func(ctx context.Context, key string) error { return remove(ctx, h.Peer, key) }
	return h
}
