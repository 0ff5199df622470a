package health

import (
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/record"
)

// FloorPriority is the priority of a candidate that is not fit, under a Floor. It is the lowest
// one, so that any fit candidate asks such a leader to hand over.
const FloorPriority = -record.MaxPriority

// Floor lets a candidate lead that is not fit, where no fit one takes over. A leader that is no
// longer fit goes on leading, until another candidate asks it to hand over. Another candidate that
// is not fit claims nothing, unless no candidate has led for a lease.
//
// Its methods are for one goroutine.
type Floor struct {
	Election *tenure.Election
	// Priority is that of the candidate while it is fit: above FloorPriority.
	Priority int
	// Lease is that of the election.
	Lease time.Duration

	fit    bool
	vacant time.Time // since when no candidate is known to lead; zero: one is, or the store fails
}

// SetFit sets whether the candidate is fit, as a Checker's Changed reports it.
func (f *Floor) SetFit(fit bool) {
	f.fit, f.vacant = fit, time.Time{}
	priority := f.Priority
	if !fit {
		priority = FloorPriority
	}
	err := f.Election.Reconfigure(func(c *tenure.Config) { c.Priority = priority })
	// If the priority stays, such as since the store no longer takes the lease, no fit candidate
	// would ask.
	f.Election.SetEligible(fit || err == nil && f.Election.Status().Term != 0)
}

// Look decides again whether a candidate that is not fit may lead. Call it after each check that
// fails.
func (f *Floor) Look() {
	s := f.Election.Status()
	switch {
	case f.fit || s.Term != 0:
	case !s.Leaderless() || s.Failures > 0:
		f.vacant = time.Time{}
		f.Election.SetEligible(false)
	case f.vacant.IsZero():
		f.vacant = time.Now()
	case time.Since(f.vacant) >= f.Lease:
		f.Election.SetEligible(true)
	}
}
