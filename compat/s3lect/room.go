package s3lect

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// checkRoom returns an error unless two renewals fit into the lease: then one that is slow, or
// lost, does not cost leadership. It is for settings that Configure has seen.
func checkRoom(c tenure.Config) error {
	if need := leastLease(c); c.Lease < need {
		return fmt.Errorf("s3lect: LeaderTimeout is %v and FrequentInterval %v: two renewals do not fit, "+
			"so that one slow request would end leadership; use a LeaderTimeout of at least %v, "+
			"or a shorter FrequentInterval", c.Lease, c.Tuning.Renew, need)
	}
	return nil
}

// leastLease is two intervals and the margin of so long a lease, rounded up.
func leastLease(c tenure.Config) time.Duration {
	const unit = 100 * time.Millisecond
	c.Lease = 2 * c.Tuning.Renew
	for range 5 { // the margin grows with the lease, by some percent of the increase
		c.Lease = 2*c.Tuning.Renew + c.Margin()
	}
	return (c.Lease + unit - 1).Truncate(unit)
}
