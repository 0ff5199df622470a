package s3lect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/peer"
	"github.com/tenure-go/tenure/timing"
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
	c.FrequentInterval = cmp.Or(c.FrequentInterval, defaultFrequent)
	c.InfrequentInterval = cmp.Or(c.InfrequentInterval, defaultInfrequent)
	c.LeaderTimeout = cmp.Or(c.LeaderTimeout, defaultTimeout)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, defaultPeer)
	switch {
	case c.PeerHealthPath == "":
		c.PeerHealthPath = peer.DefaultPath
	case !strings.HasPrefix(c.PeerHealthPath, "/"):
		c.PeerHealthPath = "/" + c.PeerHealthPath
	}
	return errors.Join(problems...)
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

// GetConfig returns a copy of the present settings, including the defaults.
func (e *S3Elector) GetConfig() *ElectorConfig {
	c := e.config()
	c.PeerCACert = bytes.Clone(c.PeerCACert)
	return &c
}

// EnablePeerMode turns on PeerMode; caCert holds the authorities in PEM, and if it is empty, they
// are those of the system. It returns an error if caCert cannot be parsed. If the store itself
// pushes changes, PeerMode has no effect.
func (e *S3Elector) EnablePeerMode(caCert []byte) error {
	return e.update(func(c *ElectorConfig) { c.PeerMode, c.PeerCACert = true, caCert })
}

// UpdateConfig changes the settings of an elector, running or not. Published fields, such as
// ServerAddr, and LeaderTimeout change with the next renewal, intervals with the next read or
// renewal, and hooks with the next call. The update does not shorten a lease that was already
// written, and does not give up leadership. ServerID, LockfilePath, PeerHealthPath and PeerTimeout
// cannot be changed. For S3lect processes that share the lockfile, the LeaderTimeout with which the
// elector was made still counts.
//
// It returns an error that names all problems, and then changes nothing.
func (e *S3Elector) UpdateConfig(newConfig ElectorConfig) error {
	return e.update(func(c *ElectorConfig) { *c = newConfig })
}

func (e *S3Elector) update(change func(*ElectorConfig)) error {
	e.updating.Lock()
	defer e.updating.Unlock()
	old := e.config()
	next := old
	change(&next)
	next.PeerCACert = bytes.Clone(next.PeerCACert)
	if err := errors.Join(next.Validate(), fixed(&old, &next)); err != nil {
		return fmt.Errorf("s3lect: %w", err)
	}
	pool, err := parseRoots(next.PeerCACert)
	if err != nil {
		return err
	}
	settings := e.settings(&next)
	if err := checkRoom(settings); err != nil {
		return err
	}
	if err := e.election.Reconfigure(func(c *tenure.Config) { *c = settings }); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg = next
	e.roots.pool.Store(pool)
	return nil
}

// fixed returns an error that names each changed field that cannot change, because other processes
// or connections depend on it.
func fixed(old, next *ElectorConfig) error {
	var problems []error
	for _, f := range []struct {
		name    string
		changed bool
	}{
		{"LockfilePath", old.LockfilePath != next.LockfilePath},
		{"ServerID", old.ServerID != next.ServerID},
		{"PeerHealthPath", old.PeerHealthPath != next.PeerHealthPath},
		{"PeerTimeout", old.PeerTimeout != next.PeerTimeout},
	} {
		if f.changed {
			problems = append(problems, errors.New(f.name+" cannot be changed; make another elector"))
		}
	}
	return errors.Join(problems...)
}

// checkRoom returns an error unless two renewals fit into the lease, so that one slow or lost
// renewal does not end leadership. The settings are those after Configure.
func checkRoom(c tenure.Config) error {
	if need := leastLease(c); c.Lease < need {
		return fmt.Errorf("s3lect: LeaderTimeout is %v and FrequentInterval %v: two renewals do not fit, "+
			"so that one slow request would end leadership; use a LeaderTimeout of at least %v, "+
			"or a shorter FrequentInterval", c.Lease, c.Tuning.Renew, need)
	}
	return nil
}

// leastLease returns the shortest lease with room for two renewals: two intervals and the margin,
// rounded up.
func leastLease(c tenure.Config) time.Duration {
	const unit = 100 * time.Millisecond
	c.Lease = 2 * c.Tuning.Renew
	for range 5 { // the margin grows with the lease, by some percent of the increase
		c.Lease = 2*c.Tuning.Renew + timing.Margin(c)
	}
	return (c.Lease + unit - 1).Truncate(unit)
}

// scheme begins a LockfilePath that includes its bucket.
const scheme = "s3://"

// open makes the election. If the store does not push, it adds peers. The translation to the
// lockfile's format is around the peers, so that they serve the same bytes as S3lect's peers.
func (e *S3Elector) open(opts S3ElectorOptions) error {
	store, name, err := opts.store(e.cfg.LockfilePath)
	if err != nil {
		return err
	}
	if driver.AbilitiesOf(store).Watcher == nil {
		if e.peers, err = e.withPeers(store, opts); err != nil {
			return fmt.Errorf("s3lect: %w", err)
		}
		store = e.peers
	}
	store, err = Legacy(store, LegacyConfig{LeaderTimeout: e.cfg.LeaderTimeout, MaxSkew: opts.MaxSkew})
	if err != nil {
		return err
	}
	settings := e.settings(&e.cfg)
	if e.election, err = tenure.New(store, name, settings); err != nil {
		return err
	}
	return checkRoom(settings)
}

// store returns the store of the lockfile, and the lockfile's key in it.
func (o *S3ElectorOptions) store(path string) (driver.Store, string, error) {
	switch {
	case o.Store != nil && o.Storage != nil:
		return nil, "", errors.New("s3lect: both Storage and Store are set")
	case o.Store != nil:
		return o.Store, path, nil
	case o.Storage != nil:
		return FromStorage(o.Storage), path, nil
	}
	bucket, key, ok := strings.Cut(strings.TrimPrefix(path, scheme), "/")
	if !ok || !strings.HasPrefix(path, scheme) {
		return nil, "", fmt.Errorf("s3lect: there is neither Storage nor Store, so LockfilePath must name a bucket, as in "+
			"%sbucket/leader.json, and is %q", scheme, path)
	}
	s, err := s3object.FromEnvironment(context.Background(), bucket)
	if err != nil {
		return nil, "", err
	}
	return s, key, nil
}

// withPeers adds peers to a store. The election's NoWatch, which can be changed, decides whether a
// follower connects to the leader.
func (e *S3Elector) withPeers(store driver.Store, opts S3ElectorOptions) (*peer.Store, error) {
	networks := opts.PeerNetworks
	if networks == nil {
		networks = privateNetworks
	}
	h := &hostReader{Store: store}
	return peer.New(h, peer.Config{
		Networks: networks, Path: e.cfg.PeerHealthPath, ClientTLS: e.roots.client(h.leader), Timeout: e.cfg.PeerTimeout,
		Retry: e.cfg.FrequentInterval,
		OnError: func(key string, err error) {
			if err != nil {
				e.log.Debug("s3lect: a leader cannot be followed; the lockfile is read instead", "lockfilePath", key, "error", err)
			}
		},
	})
}
