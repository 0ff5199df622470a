package stores

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
)

// Nomination is part of an election in which a nominator outside of it decides which candidate has
// precedence.
type Nomination struct {
	driver.Nominator
	// NomineeOnly lets no candidate but the nominee claim.
	NomineeOnly bool
	// Metadata is published by each candidate, for Check.
	Metadata map[string]string
	// Check returns an error if the published metadata of a leader shows that another Nominator
	// nominated it.
	Check func(leader map[string]string) error
	// Close gives up the nomination at once, if this candidate is the nominee.
	Close func() error
}

// Nominate takes part in the nomination for an election, if the place has one; otherwise it returns
// nil. Call it for candidates, not for observers. Its errors have hints.
func (s *Store) Nominate(ctx context.Context, election string) (*Nomination, error) {
	k := s.place.Kafka
	if k == nil || k.NELI == nil {
		return nil, nil
	}
	name := k.NELI.groupFor(election)
	if !validTopic(name) {
		return nil, s.place.blame(fault.New("put group=NAME into the URL", "a consumer group cannot be named like election %q", election))
	}
	g, err := group.Join(ctx, s.connection, group.Config{
		Name: name, Topic: k.NELI.topicFor(election), SessionTimeout: k.NELI.Session, Replicas: k.Replicas, NoCreate: !s.create,
		BesideGoNELI: !k.NELI.WithoutGoNELI, Logger: s.logger,
	})
	if err != nil {
		return nil, s.place.blame(k.explainGroup(name, k.NELI.topicFor(election), err))
	}
	return &Nomination{
		Nominator:   g,
		NomineeOnly: k.NELI.NomineeOnly,
		Metadata:    group.Metadata(name),
		Check:       func(leader map[string]string) error { return group.CheckLeader(name, leader) },
		Close:       g.Close,
	}, nil
}

// tell describes the nomination in one line of text.
func (n *NELI) tell(election string) string {
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
