package s3lect

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// checkRoom returns an error unless two renewals fit into the lease, so that one slow or lost
// renewal does not end leadership. The settings are those after Configure.
func checkRoom(c tenure.Config) error {
	if need := leastLease(c); c.Lease < need {
		return fmt.Errorf("s3lect: LeaderTimeout is %v and FrequentInterval %v: two renewals do not fit, "+
			"so that one slow request would end leadership; use a LeaderTimeout of at least %v, "+
			"or a shorter FrequentInterval", c.Lease, c.Tuning.Renew, need)
	}
	return nil
}

// leastLease returns the shortest lease with room for two renewals: two intervals and the margin,
// rounded up.
func leastLease(c tenure.Config) time.Duration {
	const unit = 100 * time.Millisecond
	c.Lease = 2 * c.Tuning.Renew
	for range 5 { // the margin grows with the lease, by some percent of the increase
		c.Lease = 2*c.Tuning.Renew + c.Margin()
	}
	return (c.Lease + unit - 1).Truncate(unit)
}
