package main

import (
	"context"
	"sync/atomic"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// tenureClient holds elections in a Group, which the documentation recommends for many of them.
type tenureClient struct{ *tenure.Group }

func withTenure(at place, s driver.Store, err error) (client, error) {
	if err != nil {
		return nil, err
	}
	g, err := tenure.NewGroup(s, tenure.Config{ID: at.ID, Lease: at.Lease})
	return tenureClient{g}, err
}

func (c tenureClient) Join(election string, elected, lost func()) (candidate, error) {
	e, err := c.Election(election)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &tenureCandidate{stop: stop}
	t.ended, err = c.Group.Join(ctx, e, tenure.Lead(func(ctx context.Context, term *tenure.Term) error {
		t.term.Store(term)
		elected()
		<-ctx.Done()
		lost()
		return nil
	}))
	return t, err
}

type tenureCandidate struct {
	term  atomic.Pointer[tenure.Term]
	stop  context.CancelFunc
	ended <-chan error
}

func (t *tenureCandidate) Leads() bool {
	term := t.term.Load()
	return term != nil && term.Err() == nil
}

func (t *tenureCandidate) Stop() {
	t.stop()
	<-t.ended
}
