package main

import (
	"strings"
	"time"

	"github.com/obsidiandynamics/goneli"
)

// goneliClient has no connection: each election of goNELI has its own.
type goneliClient struct{ place }

func openGoneli(at place) (client, error) { return goneliClient{at}, nil }

// Join has the proportions of goNELI's defaults. The session of its consumer is the lease: three
// times HeartbeatTimeout.
func (c goneliClient) Join(election string, elected, lost func()) (candidate, error) {
	n, err := goneli.New(goneli.Config{
		KafkaConfig: goneli.KafkaConfigMap{
			"bootstrap.servers":     strings.Join(c.Addresses, ","),
			"heartbeat.interval.ms": int(c.Lease.Milliseconds() / 5),
		},
		LeaderGroupID:    election,
		LeaderTopic:      c.Bucket,
		HeartbeatTimeout: goneli.Duration(c.Lease / 3),
	}, func(e goneli.Event) {
		switch e.(type) {
		case goneli.LeaderAcquired:
			elected()
		case goneli.LeaderRevoked, goneli.LeaderFenced:
			lost()
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = n.Background(func() { time.Sleep(10 * time.Millisecond) })
	return goneliCandidate{n}, err
}

type goneliCandidate struct{ goneli.Neli }

// Leads asks as goNELI's users do before each piece of work.
func (c goneliCandidate) Leads() bool {
	leads, err := c.Pulse(0)
	return leads && err == nil
}

func (c goneliCandidate) Stop() { _ = c.Close() }
