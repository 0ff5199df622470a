package s3lect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure"
)

// GetConfig returns a copy of the present settings, defaults filled in.
func (e *S3Elector) GetConfig() *ElectorConfig {
	c := e.config()
	c.PeerCACert = bytes.Clone(c.PeerCACert)
	return &c
}

// EnablePeerMode turns on PeerMode with these authorities (PEM; empty: the system's). It returns an
// error if they cannot be read. Where the store pushes changes by itself it makes no difference.
func (e *S3Elector) EnablePeerMode(caCert []byte) error {
	return e.update(func(c *ElectorConfig) { c.PeerMode, c.PeerCACert = true, caCert })
}

// UpdateConfig changes the settings of an elector, running or not: published fields and
// LeaderTimeout with the next renewal, intervals with the next read or renewal, hooks with the next
// call. A promised lease is not shortened, and leadership is not given up. ServerID, LockfilePath,
// PeerHealthPath and PeerTimeout cannot be changed. For S3lect processes that share the lockfile,
// the LeaderTimeout with which the elector was made still counts.
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

// fixed names changed fields that other processes rely on, or that the connections were made with.
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
