package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Reset puts a vacant record in place of what is no record of an election (ErrForeign) or a malformed one (ErrMalformed),
// by one compare-and-swap. It is the operator's way out: no candidate ever overwrites the former, and each waits up to MaxLease
// for the latter. Whoever calls it knows that the bytes are nobody else's, and that nobody leads with a longer lease than Config.Lease.
// A leader that is still there steps down when it meets the vacant record, and nobody is elected before that record has been seen for
// the longer of Config.Lease and the lease that the malformed record shows, if it does.
//
// It returns the least time for which nobody can be elected (whoever is there first puts one more vacant record in place of this one,
// which is waited out); ErrSound if the record is sound or there is none, an error that wraps
// driver.ErrConflict if it has changed meanwhile, one that wraps driver.ErrDenied for want of rights, and any other of the store's,
// after which the record may be reset or not.
func (e *Election) Reset(ctx context.Context) (wait time.Duration, err error) {
	m := &e.member
	err = m.amend(ctx, func(entry driver.Entry) ([]byte, error) {
		vacant, ok := m.vacate(entry)
		if !ok {
			return nil, ErrSound
		}
		wait = vacant.Lease
		return record.Encode(vacant)
	})
	if errors.Is(err, ErrSound) {
		return 0, ErrSound
	}
	return wait, m.wrap("reset", err)
}

func (m *member) vacate(e driver.Entry) (record.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Vacate(m.decode(e))
}
