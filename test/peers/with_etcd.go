package main

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdClient shares one session among its elections, as the documentation of Session suggests.
type etcdClient struct {
	*clientv3.Client
	at      place
	session atomic.Pointer[concurrency.Session]
}

func openEtcd(at place) (client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at.Address()}, DialTimeout: at.Lease, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	e := &etcdClient{Client: c, at: at}
	return e, e.renew()
}

// renew replaces the session.
func (c *etcdClient) renew() error {
	s, err := concurrency.NewSession(c.Client, concurrency.WithTTL(int(c.at.Lease/time.Second)))
	if err == nil {
		c.session.Store(s)
	}
	return err
}

func (c *etcdClient) Join(election string, elected, lost func()) (candidate, error) {
	ctx, stop := context.WithCancel(context.Background())
	e := &etcdCandidate{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		for ctx.Err() == nil {
			c.term(ctx, c.at.Bucket+"/"+election, e, elected, lost)
		}
	}()
	return e, nil
}

// term campaigns once, and leads until the session ends or the candidate stops.
func (c *etcdClient) term(ctx context.Context, key string, e *etcdCandidate, elected, lost func()) {
	s := c.session.Load()
	select {
	case <-s.Done():
		_ = c.renew()
		return
	default:
	}
	election := concurrency.NewElection(s, key)
	if election.Campaign(ctx, c.at.ID) != nil {
		return
	}
	e.session.Store(s)
	elected()
	select {
	case <-s.Done():
	case <-ctx.Done():
		e.session.Store(nil)
		_ = election.Resign(context.Background())
	}
	lost()
}

type etcdCandidate struct {
	session atomic.Pointer[concurrency.Session] // of the term
	stop    context.CancelFunc
	ended   chan struct{}
}

func (e *etcdCandidate) Leads() bool {
	s := e.session.Load()
	if s == nil {
		return false
	}
	select {
	case <-s.Done():
		return false
	default:
		return true
	}
}

func (e *etcdCandidate) Stop() {
	e.stop()
	<-e.ended
}
