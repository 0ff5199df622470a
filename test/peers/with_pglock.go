package main

import (
	"context"
	"database/sql"
	"sync/atomic"

	"cirello.io/pglock"
	_ "github.com/lib/pq" // the driver that pglock needs
)

type pglockClient struct{ *pglock.Client }

// openPglock has the proportions of pglock's README: a heartbeat every third of the lease.
func openPglock(at place) (client, error) {
	db, err := sql.Open("postgres", "postgres://postgres@"+at.Address()+"/postgres?sslmode=disable")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	c, err := pglock.New(db, pglock.WithLeaseDuration(at.Lease), pglock.WithHeartbeatFrequency(at.Lease/3),
		pglock.WithCustomTable(at.Bucket+"_pglock"), pglock.WithOwner(at.ID))
	if err != nil {
		return nil, err
	}
	return pglockClient{c}, c.TryCreateTable()
}

func (c pglockClient) Join(election string, elected, lost func()) (candidate, error) {
	ctx, stop := context.WithCancel(context.Background())
	p := &pglockCandidate{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for ctx.Err() == nil {
			_ = c.Do(ctx, election, func(ctx context.Context, l *pglock.Lock) error {
				p.lock.Store(l)
				elected()
				<-ctx.Done()
				lost()
				return nil
			})
		}
	}()
	return p, nil
}

type pglockCandidate struct {
	lock  atomic.Pointer[pglock.Lock]
	stop  context.CancelFunc
	ended chan struct{}
}

func (p *pglockCandidate) Leads() bool {
	l := p.lock.Load()
	return l != nil && !l.IsReleased()
}

func (p *pglockCandidate) Stop() {
	p.stop()
	<-p.ended
}
