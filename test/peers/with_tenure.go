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
	t := &tenureCandidate{elected: elected, lost: lost, stop: stop}
	t.ended, err = c.Group.Join(ctx, e, t)
	return t, err
}

type tenureCandidate struct {
	elected, lost func()
	term          atomic.Pointer[tenure.Term]
	stop          context.CancelFunc
	ended         <-chan error
}

// Elected is called when this process leads. The returned function ends the work.
func (t *tenureCandidate) Elected(_ context.Context, term *tenure.Term) (func(context.Context) error, error) {
	t.term.Store(term)
	t.elected()
	return func(context.Context) error {
		t.lost()
		return nil
	}, nil
}

func (t *tenureCandidate) Leads() bool {
	term := t.term.Load()
	return term != nil && term.Err() == nil
}

func (t *tenureCandidate) Stop() {
	t.stop()
	<-t.ended
}
