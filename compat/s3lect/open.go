package s3lect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/peer"
)

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
