package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

var _ gocron.Locker = Locker{}

// Locker lets one process run each tick of a job: gocron.WithDistributedLocker. The name of a job
// is the name of an election, which begins with Prefix. The context of a job does not end with its
// lease: Config.Lease must outlive short outages.
//
// The lock of a tick is kept for Within + Splay, even if the job is shorter. Otherwise each process
// would run the tick, one after another. So the ticks of a job must be further apart than
// Within + 2 * Splay: a tick that comes earlier may be skipped. A tick can run twice if the lease
// of its process is lost. Package schedule of Tenure runs each tick once.
type Locker struct {
	Store  driver.Store
	Prefix string
	Config tenure.Config
	// Within is how long a tick waits for its lock. Below a second, a job with a new name may find
	// none.
	Within time.Duration
	// Splay is how far apart two processes may begin the same tick: the difference of their clocks,
	// and of their starts in jobs of gocron.DurationJob, and how late a timer fires. If they are
	// further apart, a tick can run twice.
	Splay time.Duration
}

// errHeld is the result of Lock if another process has the lock.
var errHeld = errors.New("another process runs the job")

// Lock waits for the lock of a job.
func (l Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	if l.Within <= 0 || l.Splay <= 0 {
		return nil, fmt.Errorf("within is %v, and splay is %v: set both to more than 0", l.Within, l.Splay)
	}
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
	return lock{term, time.Now().Add(l.Within + l.Splay)}, nil
}

// lock is the lock of one tick.
type lock struct {
	*tenure.Term
	until time.Time // no process waits for this tick any more
}

// Unlock is called when the job has ended. It does not wait. The lease is released in the
// background, or expires if the program ends first.
func (l lock) Unlock(context.Context) error {
	time.AfterFunc(time.Until(l.until), func() { _ = l.Resign(context.Background()) })
	return l.Err()
}
