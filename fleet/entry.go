package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure"
)

// entry is one election of a fleet, and who nominates this member for it. All but the first fields
// are under the fleet's lock.
type entry struct {
	fleet    *Fleet
	hash     uint64
	election *tenure.Election

	done     <-chan error // nil before the start and after the end
	see      func(nominated bool)
	assigned bool // the assignment names this member
	named    bool // what see was told
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

// setAssigned takes whether the assignment names this member. A leader stays the nominee until it is
// its turn to hand over, so that nobody asks.
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

func (e *entry) start(ctx context.Context, work tenure.Lead) error {
	done, err := e.election.Start(ctx, func(ctx context.Context, t *tenure.Term) error { return e.lead(ctx, t, work) })
	if err == nil {
		e.done = done
	}
	return err
}

// lead is the work of one term. Work that ends unasked declines: the election goes on, here after a
// back-off. Work that stays ends later.
func (e *entry) lead(ctx context.Context, t *tenure.Term, work tenure.Lead) error {
	e.leads(true)
	stays := false
	defer func() { // also after Goexit
		if !stays {
			e.leads(false)
		}
	}()
	err := work(ctx, t)
	var finish tenure.Lead
	if finish, stays = tenure.Stays(err); stays {
		return tenure.Stay(func(ctx context.Context, t *tenure.Term) error {
			defer e.leads(false)
			return finish(ctx, t)
		})
	}
	if ctx.Err() != nil {
		return err
	}
	return decline(err)
}

func decline(err error) error {
	if err == nil || errors.Is(err, tenure.ErrDecline) {
		return tenure.ErrDecline
	}
	return fmt.Errorf("%w: %w", tenure.ErrDecline, err)
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
