package demo

import (
	"context"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// actEvery is the pace of a leader's work.
const actEvery = 20 * time.Millisecond

// lead is the work: many small acts, each reported at once, so that even a leader that is killed
// leaves all of them behind.
//
// The order in an act matters. The stamp comes first, then the question: if the answer is yes, the
// lease was valid at a moment after the stamp, and so at the stamp. A leader that is frozen between
// the two gets the answer no when it wakes.
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
