package kafkad

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaderOf returns the number of the broker that leads a topic's first partition. It waits until
// there is one.
func (c *Cluster) LeaderOf(ctx context.Context, topic string) (leader int, err error) {
	err = c.until(ctx, "no leader of "+topic, func(client *kgo.Client) (err error) {
		leader, err = leaderOf(ctx, client, topic, 0)
		return err
	})
	return leader, err
}

func leaderOf(ctx context.Context, client *kgo.Client, topic string, partition int) (int, error) {
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	got, err := metadata(ctx, client, []kmsg.MetadataRequestTopic{asked})
	if err != nil {
		return 0, err
	}
	for _, p := range got.Topics[0].Partitions {
		if int(p.Partition) == partition {
			return int(p.Leader), kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, kerr.UnknownTopicOrPartition
}

// CoordinatorOf returns the number of the broker that coordinates a consumer group. It waits until
// there is one.
func (c *Cluster) CoordinatorOf(ctx context.Context, group string) (coordinator int, err error) {
	err = c.until(ctx, "no coordinator of "+group, func(client *kgo.Client) (err error) {
		coordinator, err = coordinatorOf(ctx, client, group)
		return err
	})
	return coordinator, err
}

func coordinatorOf(ctx context.Context, client *kgo.Client, group string) (int, error) {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = group, []string{group}
	got, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	return int(got.Coordinators[0].NodeID), kerr.ErrorForCode(got.Coordinators[0].ErrorCode)
}

// Controller returns the number of the active controller. It waits until there is one.
func (c *Cluster) Controller(ctx context.Context) (controller int, err error) {
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req := kmsg.NewPtrDescribeQuorumRequest()
	req.Topics = append(req.Topics, t)
	err = c.until(ctx, "no controller", func(client *kgo.Client) error {
		got, err := req.RequestWith(ctx, client)
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
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	for i := range Brokers {
		p.Replicas = append(p.Replicas, int32((broker-1+i)%Brokers+1)) // the first is preferred
	}
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Topics = append(req.Topics, t)
	return c.until(ctx, "prefer a leader of "+topic, func(client *kgo.Client) error {
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(got.ErrorCode)
		for _, t := range got.Topics {
			for _, p := range t.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
		return err
	})
}

// Restore makes the preferred brokers lead the first partitions of these topics, as brokers do by
// themselves every five minutes.
func (c *Cluster) Restore(ctx context.Context, topics ...string) error {
	req := kmsg.NewPtrElectLeadersRequest()
	for _, topic := range topics {
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic, t.Partitions = topic, []int32{0}
		req.Topics = append(req.Topics, t)
	}
	return c.until(ctx, "restore the leaders", func(client *kgo.Client) error {
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(got.ErrorCode)
		for _, t := range got.Topics {
			for _, p := range t.Partitions {
				if e := kerr.ErrorForCode(p.ErrorCode); !errors.Is(e, kerr.ElectionNotNeeded) {
					err = errors.Join(err, e)
				}
			}
		}
		return err
	})
}
