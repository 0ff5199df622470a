package kafkad

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
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
	c.do(t, "give rights to "+user, func(ctx context.Context, client admin) error {
		got, err := req.RequestWith(ctx, client.raw)
		if err != nil {
			return err
		}
		for _, r := range got.Results {
			err = errors.Join(err, kerr.ErrorForCode(r.ErrorCode))
		}
		return err
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
	c.do(t, "take rights from "+user, func(ctx context.Context, client admin) error {
		_, err := req.RequestWith(ctx, client.raw)
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
	c.do(t, "the rights of "+user, func(ctx context.Context, _ admin) error {
		for _, b := range c.brokers {
			answer, err := b.ask(ctx, req)
			if err != nil {
				return err
			}
			has := 0
			for _, r := range answer.(*kmsg.DescribeACLsResponse).Resources {
				has += len(r.ACLs)
			}
			if !enough(has) {
				return fmt.Errorf("%s knows of %d", b.Name, has)
			}
		}
		return nil
	})
}

// Password sets the password by which a user logs in with SCRAM-SHA-256 at SASLSeeds. The brokers
// let these users log in again every few seconds, and close the connections of those that cannot.
func (c *Cluster) Password(t testing.TB, user, password string) {
	t.Helper()
	const leastRounds = 4096
	c.do(t, "set the password of "+user, func(ctx context.Context, client admin) error {
		got, err := client.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{
			{User: user, Mechanism: kadm.ScramSha256, Iterations: leastRounds, Password: password},
		})
		return errors.Join(err, got.Error())
	})
}
