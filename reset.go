package tenure

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Reset replaces a foreign value (ErrForeign) or a malformed record (ErrMalformed) by a vacant
// record, with one compare-and-swap. It is the operator's remedy: no candidate ever overwrites a
// foreign value, and each waits up to MaxLease for a malformed record. Before you call it, make
// sure that the bytes belong to nothing else, and that nobody leads with a longer lease than
// Config.Lease. A leader that is still there steps down when it sees the vacant record. Nobody is
// elected before that record has been visible for the longer of Config.Lease and the lease that the
// malformed record shows, if it does. A lease that is out of range counts for nothing.
//
// It returns the least time in which nobody can be elected. The wait is longer: the first candidate
// puts one more vacant record in place of this one, and all candidates wait for that too. It
// returns ErrSound if the record is sound or there is none, an error that wraps driver.ErrConflict
// if it has changed during the call, one that wraps ErrDenied if rights are missing, and any
// other error of the store's, after which the record may be reset or not.
func (e *Election) Reset(ctx context.Context) (wait time.Duration, err error) {
	m := &e.runner
	err = m.readModifyWrite(ctx, func(entry driver.Entry) ([]byte, error) {
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

func (m *runner) vacate(e driver.Entry) (record.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Vacate(m.decode(e))
}
