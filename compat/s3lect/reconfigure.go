package s3lect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure"
)

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
	if err := e.roots.check(next.PeerCACert); err != nil {
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
	return e.roots.set(next.PeerCACert)
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
