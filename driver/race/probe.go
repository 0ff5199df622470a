package race

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Rounds is the number of races of a Probe.
const Rounds = 9

// roundWithin bounds a race and the writes after it: a lost answer may never come.
const roundWithin = 10 * time.Second

// Probe tests whether a store heeds the versions of writes, on one cell that no election uses:
//
//   - If the cell is absent, writers race to create it.
//   - Then writers race to replace the present version, in all other rounds.
//   - After each race, a write from the version before it must be refused, as must the creation of
//     the cell that exists.
//
// Each finding is about the setting "conditional writes" and is driver.Unsafe. No finding means
// that the store broke no rule in the decided rounds. A lost answer, or an outcome that is not
// known, decides nothing. If no round was decided, Probe returns an error that wraps the reason:
// driver.ErrDenied without the right to write. A round takes at most 10 s.
//
// The cell stays in the store, because driver.Store has no removal. It has less than 100 bytes.
func Probe(ctx context.Context, s driver.Store, key string) (decided int, found []driver.Finding, err error) {
	p := &probe{Store: s, key: key, cell: Cell{
		Read: func(ctx context.Context) (driver.Entry, error) { return s.Read(ctx, key) },
		Write: func(ctx context.Context, prev driver.Version, value []byte) (driver.Version, error) {
			return s.CompareAndSwap(ctx, key, prev, value)
		},
	}}
	for round := 0; round < Rounds && ctx.Err() == nil && !errors.Is(p.failed, driver.ErrDenied); round++ {
		p.round(ctx)
	}
	switch {
	case errors.Is(p.failed, driver.ErrUnfit):
		p.find(p.failed.Error())
	case p.decided == 0 && len(p.found) == 0:
		return 0, nil, fmt.Errorf("race for %q: no race was decided: %w", key, cmp.Or(p.failed, context.Cause(ctx), errContended))
	}
	return p.decided, p.found, nil
}

// probe is one run of Probe.
type probe struct {
	driver.Store
	key     string
	cell    Cell
	decided int
	found   []driver.Finding
	failed  error // the last reason why an outcome is not known
}

func (p *probe) find(problem string) {
	for _, f := range p.found {
		if f.Problem == problem {
			return
		}
	}
	p.found = append(p.found, driver.Finding{
		Severity: driver.Unsafe, Setting: "conditional writes", Problem: problem,
		Remedy: "hold no election on this store: use another server, or a release of it that keeps conditional writes",
	})
}

// errContended is the reason if each race was refused to all: others write to the cell.
var errContended = errors.New("every write was refused, as if others wrote to this cell")

// round is one race, unless the state of the cell is not known.
func (p *probe) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	before, err := p.cell.Read(ctx)
	if err != nil {
		p.failed = err
		return
	}
	r := Run(ctx, p.cell, before.Version)
	what := "replace the same version"
	if before.Absent() {
		what = "create the same cell"
	}
	if r.Failed != nil {
		p.failed = r.Failed
	}
	switch {
	case r.Winners > 1:
		p.decided++
		p.find(fmt.Sprintf("of %d writers that try to %s, more than one gets a success: there will be two leaders", Contenders, what))
	case r.Overwritten:
		p.decided++
		p.find(fmt.Sprintf("after %d writers tried to %s, the write of a refused one is there: there will be two leaders", Contenders, what))
	case r.Winners == 1:
		p.decided++
		p.stale(ctx, before)
	}
}

// stale writes from the version that the race has replaced, and tries to create the cell again.
func (p *probe) stale(ctx context.Context, before driver.Entry) {
	for _, prev := range []driver.Version{before.Version, ""} {
		_, err := p.CompareAndSwap(ctx, p.key, prev, NewValue())
		switch {
		case err != nil && !errors.Is(err, driver.ErrConflict):
			p.failed = err
		case err != nil:
		case prev == "" || before.Absent():
			p.find("a cell is overwritten under the condition that it is absent: two candidates can both begin an election")
		default:
			p.find("a write from an old version replaces a newer one: an old leader overwrites the record of the new one")
		}
	}
}
