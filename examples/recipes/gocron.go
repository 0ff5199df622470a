package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

var (
	_ gocron.Elector = Elector{}
	_ gocron.Locker  = Locker{}
)

// Elector lets gocron start jobs on the leader only: gocron.WithDistributedElector. The program
// calls Election.Run beside the scheduler. A job that has started does not stop when the term ends:
// in long jobs, check the term.
type Elector struct{ *tenure.Election }

// IsLeader returns nil while the lease of this process is valid.
func (e Elector) IsLeader(context.Context) error {
	term, _ := e.Term()
	return term.Err() // a nil term is over
}

// Locker lets one process at a time run each job: gocron.WithDistributedLocker. The name of a job
// is the name of an election, which begins with Prefix. The context of a job does not end with its
// lease: Config.Lease must outlive short outages.
type Locker struct {
	Store  driver.Store
	Prefix string
	Config tenure.Config
	// Within is how long a job waits for its lock. Below a second, a job with a new name may find
	// none.
	Within time.Duration
}

// errHeld is the result of Lock if another process has the lock.
var errHeld = errors.New("another process runs the job")

// Lock waits for the lock of a job.
func (l Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	e, err := tenure.New(l.Store, l.Prefix+job, l.Config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.Within, errHeld)
	defer cancel()
	term, err := e.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return lock{term}, nil
}

type lock struct{ *tenure.Term }

// Unlock is called when the job has ended.
func (l lock) Unlock(ctx context.Context) error { return l.Resign(ctx) }
