package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure"
)

// entry is one election of a fleet, and its Nominator. All but the first fields are under the
// fleet's lock.
type entry struct {
	fleet    *Fleet
	hash     uint64
	group    *tenure.Group
	election *tenure.Election

	done     <-chan error // nil before the start and after the end
	see      func(nominated bool)
	assigned bool // the assignment names this member
	named    bool // the last argument of see
	led      bool // the work of a term is under way
	queued   bool // it is to be handed over
	barred   bool // it is not eligible yet
	gone     bool // it is not the fleet's any more
}

// Nominate implements driver.Nominator.
func (e *entry) Nominate(see func(nominated bool)) (stop func()) {
	f := e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	e.see = see
	see(e.named)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		e.see = nil
	}
}

// setNominated nominates this member, or ends that. It runs under the fleet's lock; see comes back
// to no fleet.
func (e *entry) setNominated(nominated bool) {
	if e.named == nominated {
		return
	}
	e.named = nominated
	if e.see != nil {
		e.see(nominated)
	}
	if s := e.fleet.run; !nominated && s != nil {
		s.bar(e)
	}
}

// setAssigned takes whether the assignment names this member. A leader stays the nominee until it
// is its turn to hand over, so that no member asks it to.
func (e *entry) setAssigned(me bool) {
	e.assigned = me
	switch {
	case me:
		e.setNominated(true)
	case e.named && e.led:
		e.fleet.moves.add(e)
	default:
		e.setNominated(false)
	}
}

func (e *entry) join(ctx context.Context, work tenure.Handler) error {
	ended, err := e.group.Join(ctx, e.election, &leader{e, work})
	if err == nil {
		e.done = ended
	}
	return err
}

// leader is the work of an election's terms, which it counts. Work that ends unasked declines: the
// election goes on, here after a back-off.
type leader struct {
	*entry
	work tenure.Handler
}

// Elected implements tenure.Handler.
func (l *leader) Elected(ctx context.Context, t *tenure.Term) error {
	l.leads(true)
	goesOn := false
	defer func() { // also after Goexit
		if !goesOn {
			l.leads(false)
		}
	}()
	err := l.work.Elected(ctx, t)
	if goesOn = err == nil; goesOn || ctx.Err() != nil {
		return err
	}
	return decline(err)
}

// Stop implements tenure.Handler.
func (l *leader) Stop(ctx context.Context, t *tenure.Term) error {
	defer l.leads(false)
	return l.work.Stop(ctx, t)
}

func decline(err error) error {
	if errors.Is(err, tenure.ErrDecline) {
		return tenure.ErrDecline
	}
	return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
}

// function is a tenure.Lead that declines where it returns nil unasked.
type function struct{ tenure.Lead }

// Elected implements tenure.Handler.
func (f function) Elected(ctx context.Context, t *tenure.Term) error {
	err := f.Lead(ctx, t)
	if err == nil && ctx.Err() == nil {
		return tenure.ErrDecline
	}
	return err
}

// leads keeps count. A leader that is not meant to be one, and was named when it was elected, is to
// hand over.
func (e *entry) leads(yes bool) {
	f := e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	e.count(yes)
	if yes {
		e.setAssigned(e.assigned)
	}
}

// count is called under the lock.
func (e *entry) count(led bool) {
	f := e.fleet
	switch {
	case led == e.led:
		return
	case led:
		f.led++
	default:
		f.led--
	}
	e.led = led
	f.show()
}
