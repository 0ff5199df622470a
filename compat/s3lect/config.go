package s3lect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/peer"
)

// ElectorConfig is S3lect's configuration. Zero durations and an empty PeerHealthPath mean the
// defaults.
type ElectorConfig struct {
	// LockfilePath is the key of the lockfile, such as "leader/my-group.json": the name of the
	// election. Without a Storage and a Store it also names the bucket:
	// "s3://bucket/leader/my-group.json".
	LockfilePath string
	// ServerID names this process.
	ServerID string
	// ServerAddr is where peers reach this process, as host:port.
	ServerAddr string

	// FrequentInterval is the time between two renewals, and between two reads, except while a
	// leader is seen to renew. Default: 5 s. It must leave room for two renewals within
	// LeaderTimeout.
	FrequentInterval time.Duration
	// InfrequentInterval is the time between two reads while a leader is seen to renew. Default: 30
	// s. A value above LeaderTimeout or below FrequentInterval has no effect: the lockfile is read
	// in any case when LeaderTimeout would be over.
	InfrequentInterval time.Duration
	// LeaderTimeout is how long a leader may be silent before another takes over: the lease.
	// Default: 15 s; at least the store's minimum, 2 s for object storage.
	LeaderTimeout time.Duration

	// PeerMode lets followers receive changes from the leader itself.
	PeerMode bool
	// PeerHealthPath is the HTTP path at which leaders serve their peers. Default:
	// /health/leadership. A missing first slash is added.
	PeerHealthPath string
	// PeerTimeout bounds a connection to a leader until its first answer. Default: 3 s.
	PeerTimeout time.Duration
	// PeerCACert holds the authorities, in PEM, that may sign a leader's certificate. Empty: those
	// of the system.
	PeerCACert []byte

	// OnAcquireLeadership is called when this process was elected. If it returns an error, the
	// process gives up leadership, and campaigns again later. The context ends when leadership
	// does.
	OnAcquireLeadership func(ctx context.Context) error
	// OnLoseLeadership is called when leadership has ended, and after OnAcquireLeadership failed.
	// Its error is logged. Its context ends after 5 s. No other process is elected before it has
	// returned, unless the lease has expired.
	OnLoseLeadership func(ctx context.Context) error
}

const (
	defaultFrequent   = 5 * time.Second
	defaultInfrequent = 30 * time.Second
	defaultTimeout    = 15 * time.Second
	defaultPeer       = 3 * time.Second
)

// Validate fills in the defaults. It returns an error if LockfilePath, ServerID or ServerAddr is
// missing. The limits of the store and the election are checked when an elector is made or updated.
func (c *ElectorConfig) Validate() error {
	var problems []error
	for _, need := range []struct{ name, value string }{
		{"LockfilePath", c.LockfilePath}, {"ServerID", c.ServerID}, {"ServerAddr", c.ServerAddr},
	} {
		if need.value == "" {
			problems = append(problems, errors.New(need.name+" is empty"))
		}
	}
	orDefault(&c.FrequentInterval, defaultFrequent)
	orDefault(&c.InfrequentInterval, defaultInfrequent)
	orDefault(&c.LeaderTimeout, defaultTimeout)
	orDefault(&c.PeerTimeout, defaultPeer)
	switch {
	case c.PeerHealthPath == "":
		c.PeerHealthPath = peer.DefaultPath
	case !strings.HasPrefix(c.PeerHealthPath, "/"):
		c.PeerHealthPath = "/" + c.PeerHealthPath
	}
	return errors.Join(problems...)
}

func orDefault(d *time.Duration, by time.Duration) {
	if *d == 0 {
		*d = by
	}
}

// tenure returns the settings of the election.
func (c *ElectorConfig) tenure() tenure.Config {
	return tenure.Config{
		ID: c.ServerID, Address: c.ServerAddr, Lease: c.LeaderTimeout,
		Tuning: tenure.Tuning{
			Renew: c.FrequentInterval, Poll: c.FrequentInterval,
			PollStable: max(c.InfrequentInterval, c.FrequentInterval),
		},
	}
}
