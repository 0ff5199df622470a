//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
)

// lookWithin bounds the inspection of a store's settings without --inspect.
const lookWithin = 5 * time.Second

// look logs unsafe settings of the store, if it can read them. With --inspect it tests the store,
// and returns an error if it is unsafe.
func (r *runFlags) look(ctx context.Context, s *stores.Store, log *slog.Logger) error {
	if !r.inspect && !r.place.Pushes() {
		return nil // this store has no settings to read, and a test needs many requests
	}
	if !r.inspect {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookWithin)
		defer cancel()
	}
	found, err := s.Inspect(ctx, r.lease)
	if err != nil {
		if r.inspect {
			return err
		}
		log.Debug("the store's settings cannot be looked at", "cause", err)
		return nil
	}
	for _, f := range found {
		if r.inspect && f.Severity == driver.Unsafe {
			return r.place.Unsafe(f)
		}
		log.Log(ctx, r.levelOf(f), f.Problem, "severity", f.Severity.String(), "setting", f.Setting, "remedy", f.Remedy)
	}
	return nil
}

// levelOf returns the level of a finding in the log. A bucket that another tool made has sequence
// numbers that begin at 1. Most operators accept that, so only --inspect warns of it.
func (r *runFlags) levelOf(f driver.Finding) slog.Level {
	if f.Severity < driver.Warning || !r.inspect && f.Severity == driver.Warning && f.Setting == "first_seq" {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// part holds the arguments of an election besides its name, and what to close after it.
type part struct {
	store   driver.Store
	config  tenure.Config
	closers []func() error
}

// leave closes the parts. Call it after the election.
func (p *part) leave() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		_ = p.closers[i]()
	}
}

// peerTrouble logs failures between members. An error without an election is of an incoming
// connection, or of the files with the certificates.
func peerTrouble(log *slog.Logger) func(election string, err error) {
	return func(election string, err error) {
		switch {
		case err == nil:
		case errors.Is(err, peer.ErrCertificates):
			log.Warn("the files of --peer-ca, --peer-cert and --peer-key cannot be used: the last good ones stay in use", "cause", err)
		case election == "":
			log.Warn("a connection to this process cannot be served", "cause", err)
		default:
			log.Warn("no reports from the leader over --peer: this candidate reads the store instead", "cause", err)
		}
	}
}

// join returns the store with the nomination and the peers, if there are any.
func (r *runFlags) join(ctx context.Context, s *stores.Store, log *slog.Logger) (*part, error) {
	p := &part{store: s.Driver, config: r.config()}
	p.config.Logger = slog.New(storeNamer{log.Handler(), r.place.String()})
	n, err := s.Nominate(ctx, r.election)
	if err != nil {
		return nil, err
	}
	if n != nil {
		p.nominate(n, log)
	}
	if r.members == nil {
		return p, nil
	}
	m, err := r.members.Open(ctx, p.store, peerTrouble(log))
	if err != nil {
		p.leave()
		return nil, err
	}
	p.store, p.config.Address = m.Store, m.Address
	p.closers = append(p.closers, m.Close)
	return p, nil
}

func (p *part) nominate(n *stores.Nomination, log *slog.Logger) {
	p.config.Nominator, p.config.NomineeOnly, p.config.Metadata = n.Nominator, n.NomineeOnly, n.Metadata
	p.config.OnEvent = func(e tenure.Event) {
		if e.Kind != tenure.EventLeader {
			return
		}
		if err := n.Check(e.Leader.Metadata); err != nil && !errors.Is(err, context.Canceled) {
			log.Error("two nominations for one election", "cause", err)
		}
	}
	p.closers = append(p.closers, n.Close)
}
