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
)

// lookWithin bounds the look at a store's settings, which was not asked for.
const lookWithin = 5 * time.Second

// look reports unsafe settings of the store as far as they show. With --inspect it tries the store
// out and refuses an unsafe one.
func (r *runFlags) look(ctx context.Context, s *stores.Store, log *slog.Logger) error {
	if !r.inspect && !r.place.Pushes() {
		return nil // a store without settings to look at takes many requests
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

// levelOf is that of a finding in the log. Each bucket that other tools made has sequences that
// begin at 1, and most operators leave it at that: only --inspect warns of it.
func (r *runFlags) levelOf(f driver.Finding) slog.Level {
	if f.Severity < driver.Warning || !r.inspect && f.Severity == driver.Warning && f.Setting == "first_seq" {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// part holds the parts of an election besides its name.
type part struct {
	store   driver.Store
	config  tenure.Config
	closers []func() error
}

// leave comes after the election.
func (p *part) leave() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		_ = p.closers[i]()
	}
}

// peerTrouble logs failures between members. An error without an election is of a connection that
// another process made to this one.
func peerTrouble(log *slog.Logger) func(election string, err error) {
	return func(election string, err error) {
		switch {
		case err == nil:
		case election == "":
			log.Warn("a connection to this process cannot be served", "cause", err)
		default:
			log.Warn("a leader cannot be followed", "cause", err)
		}
	}
}

// join adds the nomination and the peers to the store, if there are any.
func (r *runFlags) join(ctx context.Context, s *stores.Store, log *slog.Logger) (*part, error) {
	p := &part{store: s.Driver, config: r.config()}
	p.config.Logger = log
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
