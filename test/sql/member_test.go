package sql

import (
	"context"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// member is one candidate.
type member struct {
	*tenure.Election
	leads chan *tenure.Term
	gone  chan struct{} // closed when it has left
}

// joins starts a candidate that leads until the test ends.
func joins(t *testing.T, ctx context.Context, s driver.Store, cfg tenure.Config) *member {
	t.Helper()
	e, err := tenure.New(s, "billing", cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{e, make(chan *tenure.Term, 1), make(chan struct{})}
	go func() {
		defer close(m.gone)
		_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			m.leads <- term
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() { <-m.gone })
	return m
}
