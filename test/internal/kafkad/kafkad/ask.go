package kafkad

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// settle is the time between two attempts of a request that has not yet succeeded.
const settle = 50 * time.Millisecond

// admin is a client of the super user, which soon gives up on a silent broker.
type admin struct {
	*kadm.Client
	raw *kgo.Client // for requests that kadm does not have
}

func newAdmin(seeds ...string) (admin, error) {
	raw, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.DialTimeout(time.Second),
		kgo.RequestTimeoutOverhead(2*time.Second), kgo.RetryTimeout(5*time.Second), kgo.MetadataMinAge(settle))
	if err != nil {
		return admin{}, err
	}
	return admin{kadm.NewClient(raw), raw}, nil
}

// until calls ask with a client until there is no error or the context ends.
func (c *Cluster) until(ctx context.Context, what string, ask func(admin) error) error {
	client, err := newAdmin(c.Seeds()...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := ask(client)
		if err == nil {
			return nil
		}
		if fault := c.endedEarly(); fault != nil {
			return fault
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(settle):
		}
	}
}

// ask sends a request to one broker, which answers as far as it knows.
func (b *broker) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	client, err := newAdmin(b.address)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer, err := client.raw.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name, err)
	}
	return answer, nil
}

// endedEarly returns an error if a broker should run and has ended.
func (c *Cluster) endedEarly() error {
	for _, b := range c.brokers {
		if b.EndedEarly() {
			return b.Fault("ended by itself")
		}
	}
	return nil
}

// Ready waits until all brokers are members and topics with three copies can be created.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const probe = "kafkad.ready"
	err := c.until(ctx, "the brokers are not ready", func(client admin) error {
		if err := members(ctx, c.brokers[:]...); err != nil {
			return err
		}
		return client.create(ctx, probe, nil)
	})
	if err != nil {
		return err
	}
	return c.until(ctx, "the probe's topic cannot be deleted", func(client admin) error { return client.delete(ctx, probe) })
}

// joined waits until a broker is a member of the cluster.
func (c *Cluster) joined(ctx context.Context, b *broker) error {
	return c.until(ctx, b.Name+" does not join", func(admin) error { return members(ctx, b) })
}

// Complete waits until all brokers are members and all copies of all partitions are complete.
func (c *Cluster) Complete(ctx context.Context) error {
	return c.until(ctx, "copies are missing", func(client admin) error {
		if err := members(ctx, c.brokers[:]...); err != nil {
			return err
		}
		return client.complete(ctx)
	})
}

// members returns an error unless each of these brokers names all of them as members. Answers of
// other brokers may be old.
func members(ctx context.Context, wanted ...*broker) error {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, b := range wanted {
		answer, err := b.ask(ctx, req)
		if err != nil {
			return err
		}
		there := map[int]bool{}
		for _, member := range answer.(*kmsg.MetadataResponse).Brokers {
			there[int(member.NodeID)] = true
		}
		for _, other := range wanted {
			if !there[other.n] {
				return fmt.Errorf("%s is no member, by the word of %s", other.Name, b.Name)
			}
		}
	}
	return nil
}

func (a admin) complete(ctx context.Context) error {
	got, err := a.Metadata(ctx)
	if err != nil {
		return err
	}
	for _, t := range got.Topics {
		for _, p := range t.Partitions {
			if len(p.ISR) < len(p.Replicas) || p.Leader < 0 {
				return fmt.Errorf("partition %d of %s has %d copies of %d", p.Partition, t.Topic, len(p.ISR), len(p.Replicas))
			}
		}
	}
	return nil
}

// create creates a topic unless it exists.
func (a admin) create(ctx context.Context, name string, settings map[string]string) error {
	given := map[string]*string{}
	for key, value := range settings {
		given[key] = &value
	}
	_, err := a.CreateTopic(ctx, 1, Brokers, given, name)
	return except(err, kerr.TopicAlreadyExists)
}

func (a admin) delete(ctx context.Context, name string) error {
	_, err := a.DeleteTopic(ctx, name)
	return except(err, kerr.UnknownTopicOrPartition)
}

// except returns an error unless it is the expected one.
func except(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// LeaderOf returns the number of the broker that leads a topic's first partition. It waits until
// there is one.
func (c *Cluster) LeaderOf(ctx context.Context, topic string) (leader int, err error) {
	return c.leaderOf(ctx, topic, 0)
}

func (c *Cluster) leaderOf(ctx context.Context, topic string, partition int) (leader int, err error) {
	err = c.until(ctx, "no leader of "+topic, func(client admin) error {
		got, err := client.Metadata(ctx, topic)
		if err != nil {
			return err
		}
		p, found := got.Topics[topic].Partitions[int32(partition)]
		if !found {
			return kerr.UnknownTopicOrPartition
		}
		leader = int(p.Leader)
		return p.Err
	})
	return leader, err
}

// CoordinatorOf returns the number of the broker that coordinates a consumer group. It waits until
// there is one.
func (c *Cluster) CoordinatorOf(ctx context.Context, group string) (coordinator int, err error) {
	err = c.until(ctx, "no coordinator of "+group, func(client admin) error {
		got := client.FindGroupCoordinators(ctx, group)[group]
		coordinator = int(got.NodeID)
		return got.Err
	})
	return coordinator, err
}

// Controller returns the number of the active controller. It waits until there is one.
func (c *Cluster) Controller(ctx context.Context) (controller int, err error) {
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req := kmsg.NewPtrDescribeQuorumRequest()
	req.Topics = append(req.Topics, t)
	err = c.until(ctx, "no controller", func(client admin) error {
		got, err := req.RequestWith(ctx, client.raw)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			return err
		}
		found := got.Topics[0].Partitions[0]
		controller = int(found.LeaderID)
		return kerr.ErrorForCode(found.ErrorCode)
	})
	return controller, err
}

// Prefer makes a broker the preferred leader of a topic's first partition. Restore lets it lead.
func (c *Cluster) Prefer(ctx context.Context, topic string, broker int) error {
	var replicas []int32
	for i := range Brokers {
		replicas = append(replicas, int32((broker-1+i)%Brokers+1)) // the first is preferred
	}
	var wanted kadm.AlterPartitionAssignmentsReq
	wanted.Assign(topic, 0, replicas)
	return c.until(ctx, "prefer a leader of "+topic, func(client admin) error {
		got, err := client.AlterPartitionAssignments(ctx, wanted)
		return errors.Join(err, got.Error())
	})
}

// Restore makes the preferred brokers lead the first partitions of these topics, as brokers do by
// themselves every five minutes.
func (c *Cluster) Restore(ctx context.Context, topics ...string) error {
	var first kadm.TopicsSet
	for _, topic := range topics {
		first.Add(topic, 0)
	}
	return c.until(ctx, "restore the leaders", func(client admin) error {
		got, err := client.ElectLeaders(ctx, kadm.ElectPreferredReplica, first)
		for _, partitions := range got {
			for _, p := range partitions {
				err = errors.Join(err, except(p.Err, kerr.ElectionNotNeeded))
			}
		}
		return err
	})
}

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
