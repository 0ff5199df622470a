package demo

import (
	"context"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// actEvery is the time from one act of a leader to the next.
const actEvery = 20 * time.Millisecond

// lead is the work: many small acts. Each is reported at once, so that none is lost when the leader
// is killed.
//
// The order in an act matters. It reads the clock first, and then checks the term: if the term is
// valid after the reading, it was valid at the reading too. If the leader is frozen between the
// two, the check fails when it wakes.
func (c *candidate) lead(ctx context.Context, term *tenure.Term) error {
	pace := time.NewTicker(actEvery)
	defer pace.Stop()
	for {
		at := stamp.Now()
		if term.Err() == nil {
			c.reports.send(report{At: at, Act: term.Token()})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
	}
}
