package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure"
)

// entry is one election of a fleet, and its Nominator. The fields from done on are under the
// fleet's lock.
type entry struct {
	fleet    *Fleet
	hash     uint64
	group    *tenure.Group
	election *tenure.Election

	done       <-chan error // nil before the start and after the end
	see        func(nominated bool)
	assigned   bool // the assignment names this member
	isNominee  bool // the last argument that see received
	isLed      bool // the work of a term is under way
	queued     bool // it is to be handed over
	ineligible bool // it waits until it may claim
	removed    bool // SetElections has removed it
}

// Nominate implements driver.Nominator.
func (e *entry) Nominate(see func(nominated bool)) (stop func()) {
	f := e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	e.see = see
	see(e.isNominee)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		e.see = nil
	}
}

// setNominated nominates this member, or ends the nomination. It runs under the fleet's lock, which
// the election's see does not take.
func (e *entry) setNominated(nominated bool) {
	if e.isNominee == nominated {
		return
	}
	e.isNominee = nominated
	if e.see != nil {
		e.see(nominated)
	}
	if s := e.fleet.run; !nominated && s != nil {
		s.makeIneligible(e)
	}
}

// setAssigned sets whether the election is assigned to this member. A leader stays the nominee
// until its hand-over is due, so that no other member asks for it earlier.
func (e *entry) setAssigned(me bool) {
	e.assigned = me
	switch {
	case me:
		e.setNominated(true)
	case e.isNominee && e.isLed:
		e.fleet.moves.add(e)
	default:
		e.setNominated(false)
	}
}

func (e *entry) join(ctx context.Context, work tenure.Handler) error {
	ended, err := e.group.Join(ctx, e.election, &trackedWork{e, work})
	if err == nil {
		e.done = ended
	}
	return err
}

// trackedWork is the work of an election's terms, and records whether it runs. If the work ends
// before it was asked to finish, trackedWork returns ErrDecline, so that this member campaigns
// again after a back-off.
type trackedWork struct {
	*entry
	work tenure.Handler
}

// Elected implements tenure.Handler.
func (l *trackedWork) Elected(ctx context.Context, t *tenure.Term) error {
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
func (l *trackedWork) Stop(ctx context.Context, t *tenure.Term) error {
	defer l.leads(false)
	return l.work.Stop(ctx, t)
}

func decline(err error) error {
	if errors.Is(err, tenure.ErrDecline) {
		return tenure.ErrDecline
	}
	return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
}

// declining is a tenure.Lead. If the function returns nil before it was asked to finish, declining
// returns ErrDecline.
type declining struct{ tenure.Lead }

// Elected implements tenure.Handler.
func (f declining) Elected(ctx context.Context, t *tenure.Term) error {
	err := f.Lead(ctx, t)
	if err == nil && ctx.Err() == nil {
		return tenure.ErrDecline
	}
	return err
}

// leads records whether the work of a term runs. If the election is assigned to another member by
// now, it has to be handed over.
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
	case led == e.isLed:
		return
	case led:
		f.led++
	default:
		f.led--
	}
	e.isLed = led
	f.notifyChanged()
}
