package kafkad

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Allow gives a user rights to one topic, group or other resource. It returns when all brokers know
// the rights.
func (c *Cluster) Allow(t testing.TB, user string, kind kmsg.ACLResourceType, name string, rights ...kmsg.ACLOperation) {
	t.Helper()
	req := kmsg.NewPtrCreateACLsRequest()
	for _, right := range rights {
		acl := kmsg.NewCreateACLsRequestCreation()
		acl.ResourceType, acl.ResourceName, acl.ResourcePatternType = kind, name, kmsg.ACLResourcePatternTypeLiteral
		acl.Principal, acl.Host, acl.Operation, acl.PermissionType = "User:"+user, "*", right, kmsg.ACLPermissionTypeAllow
		req.Creations = append(req.Creations, acl)
	}
	c.do(t, "give rights to "+user, func(ctx context.Context, client *kgo.Client) error {
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		for _, r := range got.Results {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return err
			}
		}
		return nil
	})
	c.heard(t, user, func(has int) bool { return has >= len(rights) }, &name)
}

// Revoke takes all rights from a user. It returns when all brokers know that.
func (c *Cluster) Revoke(t testing.TB, user string) {
	t.Helper()
	principal := "User:" + user
	f := kmsg.NewDeleteACLsRequestFilter()
	f.ResourceType, f.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	f.Operation, f.PermissionType, f.Principal = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny, &principal
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Filters = append(req.Filters, f)
	c.do(t, "take rights from "+user, func(ctx context.Context, client *kgo.Client) error {
		_, err := req.RequestWith(ctx, client)
		return err
	})
	c.heard(t, user, func(has int) bool { return has == 0 }, nil)
}

// heard waits until enough accepts the number of rights that each broker knows of a user: to the
// named resource, or to all if name is nil.
func (c *Cluster) heard(t testing.TB, user string, enough func(int) bool, name *string) {
	t.Helper()
	principal := "User:" + user
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourcePatternType, req.ResourceName = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny, name
	req.Operation, req.PermissionType, req.Principal = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny, &principal
	c.do(t, "the rights of "+user, func(ctx context.Context, client *kgo.Client) error {
		members, err := metadata(ctx, client, []kmsg.MetadataRequestTopic{})
		if err != nil {
			return err
		}
		for _, b := range members.Brokers {
			answer, err := client.Broker(int(b.NodeID)).Request(ctx, req)
			if err != nil {
				return err
			}
			if has := rightsIn(answer.(*kmsg.DescribeACLsResponse)); !enough(has) {
				return fmt.Errorf("broker %d knows of %d", b.NodeID, has)
			}
		}
		return nil
	})
}

func rightsIn(answer *kmsg.DescribeACLsResponse) int {
	n := 0
	for _, r := range answer.Resources {
		n += len(r.ACLs)
	}
	return n
}
