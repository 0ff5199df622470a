package kafkatopic

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (k *Place) nominate(ctx context.Context, connection []kgo.Opt, o kind.Options, election string) (*kind.Nomination, error) {
	name := k.NELI.groupFor(election)
	if !validTopic(name) {
		return nil, fault.New("put group=NAME into the URL", "a consumer group cannot be named like election %q", election)
	}
	g, err := group.Join(ctx, connection, group.Config{
		Name: name, Topic: k.NELI.topicFor(election), SessionTimeout: k.NELI.Session, Replicas: k.Replicas, NoCreate: !o.Create,
		BesideGoNELI: !k.NELI.WithoutGoNELI, Logger: o.Logger,
	})
	if err != nil {
		return nil, k.explainGroup(name, k.NELI.topicFor(election), err)
	}
	return &kind.Nomination{
		Nominator:   g,
		NomineeOnly: k.NELI.NomineeOnly,
		Metadata:    group.Metadata(name),
		Check:       func(leader map[string]string) error { return group.CheckLeader(name, leader) },
		Close:       g.Close,
	}, nil
}

// Nomination describes the consumer group that nominates the leader of an election.
func (k *Place) Nomination(election string) string {
	n := k.NELI
	if n == nil {
		return ""
	}
	text := fmt.Sprintf("Consumer group %s nominates the leader: the owner of partition 0 of %s. ", n.groupFor(election), n.topicFor(election))
	if n.NomineeOnly {
		return text + "No other candidate ever claims."
	}
	if n.WithoutGoNELI {
		return text + "Other candidates wait one lease longer before they claim."
	}
	return text + "Other candidates wait one lease longer before they claim, and claim only while the group confirms them as members."
}

// topicFor returns the topic that the group subscribes to.
func (n *NELI) topicFor(election string) string {
	if n.Topic != "" {
		return n.Topic
	}
	return n.groupFor(election) + ".neli"
}

func (n *NELI) groupFor(election string) string {
	if n.Group != "" {
		return n.Group
	}
	return election
}
