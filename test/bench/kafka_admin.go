package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newTopicAt makes a topic of which broker n is the preferred leader, and makes it lead.
func (k *brokers) newTopicAt(ctx context.Context, n int) (string, error) {
	topic, err := k.newTopic(ctx)
	if err != nil {
		return "", err
	}
	k.homes = append(k.homes, topic)
	err = k.ask(ctx, "prefer a leader of "+topic, func(ctx context.Context, client *kgo.Client) error {
		return prefer(ctx, client, topic, n)
	})
	if err != nil {
		return "", err
	}
	return topic, k.restore(ctx)
}

// prefer reorders the copies of a topic: the first is the preferred leader.
func prefer(ctx context.Context, client *kgo.Client, topic string, n int) error {
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	for i := range kafkad.Brokers {
		p.Replicas = append(p.Replicas, int32((n-1+i)%kafkad.Brokers+1))
	}
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Topics = append(req.Topics, t)
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
}

// restore lets the preferred brokers lead, as brokers do by themselves every five minutes.
func (k *brokers) restore(ctx context.Context) error {
	return k.ask(ctx, "restore the leaders", func(ctx context.Context, client *kgo.Client) error {
		req := kmsg.NewPtrElectLeadersRequest()
		for _, topic := range k.homes {
			t := kmsg.NewElectLeadersRequestTopic()
			t.Topic, t.Partitions = topic, []int32{0}
			req.Topics = append(req.Topics, t)
		}
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

// part renames the first election until the coordinator of the group of that name is another broker than leads the log.
func (c *cast) part(k *brokers) error {
	log, err := k.leader(c.b.ctx, c.role.Bucket)
	if err != nil {
		return err
	}
	for range 100 {
		name := c.name + "-" + rand.Text()[:8]
		coordinator, err := k.coordinator(c.b.ctx, name)
		if err != nil {
			return err
		}
		if coordinator != log {
			c.role.Elections[0], c.coordinator = name, slices.Index(k.addresses, coordinator)
			return nil
		}
	}
	return errors.New("one broker is everything")
}

// leader is the address of the broker that leads a topic.
func (k *brokers) leader(ctx context.Context, topic string) (address string, err error) {
	err = k.ask(ctx, "find the leader of "+topic, func(ctx context.Context, client *kgo.Client) error {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topic
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = append(req.Topics, t)
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(got.Topics[0].ErrorCode); err != nil {
			return err
		}
		for _, b := range got.Brokers {
			if b.NodeID == got.Topics[0].Partitions[0].Leader {
				address = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
				return nil
			}
		}
		return kerr.LeaderNotAvailable
	})
	return address, err
}

// coordinator is the address of the broker that coordinates a group.
func (k *brokers) coordinator(ctx context.Context, group string) (address string, err error) {
	err = k.ask(ctx, "find the coordinator of "+group, func(ctx context.Context, client *kgo.Client) error {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorKeys = group, []string{group}
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		found := got.Coordinators[0]
		address = net.JoinHostPort(found.Host, strconv.Itoa(int(found.Port)))
		return kerr.ErrorForCode(found.ErrorCode)
	})
	return address, err
}

// controller is the number of the active one.
func (k *brokers) controller(ctx context.Context) (int, error) {
	leader := 0
	err := k.ask(ctx, "find the controller", func(ctx context.Context, client *kgo.Client) error {
		p := kmsg.NewDescribeQuorumRequestTopicPartition()
		t := kmsg.NewDescribeQuorumRequestTopic()
		t.Topic, t.Partitions = "__cluster_metadata", append(t.Partitions, p)
		req := kmsg.NewPtrDescribeQuorumRequest()
		req.Topics = append(req.Topics, t)
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			return err
		}
		found := got.Topics[0].Partitions[0]
		leader = int(found.LeaderID)
		return kerr.ErrorForCode(found.ErrorCode)
	})
	return leader, err
}
