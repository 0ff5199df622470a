// Package race finds stores that let two writers replace the same version of a cell. Several
// writers race for it, and exactly one may win. A store that checks the version and writes in two
// steps passes any test without a race.
//
// Adapters whose servers may ignore conditions use [Run] in their Inspect. [Probe] tests any
// driver.Store.
package race

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// Contenders is the number of writers in a race.
const Contenders = 16

// Cell is the cell for which writers race.
type Cell struct {
	// Read returns the state of the cell.
	Read func(ctx context.Context) (driver.Entry, error)
	// Write replaces the version prev. Its error wraps driver.ErrConflict if the store refused this
	// write because of the version. With any other error the outcome is not known.
	Write func(ctx context.Context, prev driver.Version, value []byte) (driver.Version, error)
}

// Result is the outcome of a race.
type Result struct {
	// Version is the state of the cell after the race; empty: not known.
	Version driver.Version
	// Winners counts the writers that got a success: two are a fault of the store. Refused counts
	// those that were refused.
	Winners, Refused int
	// Failed is why the outcome of a write, or of the read after the race, is not known. A lost
	// answer is no fault of the store.
	Failed error
	// Overwritten: only one write was acknowledged, all others were refused, and the cell holds the
	// value of a refused one.
	Overwritten bool
	// Stale: the read after the race shows an earlier state. Elections allow for stale reads.
	Stale bool
}

// Run lets Contenders writers replace the version prev at one moment, and reads the cell after it.
// The cell must have that version, and no other writer. The values are those of NewValue.
func Run(ctx context.Context, c Cell, prev driver.Version) Result {
	values, errs := make([][]byte, Contenders), make([]error, Contenders)
	versions := make([]driver.Version, Contenders)
	var all sync.WaitGroup
	gun := make(chan struct{})
	for i := range Contenders {
		values[i] = NewValue()
		all.Go(func() {
			<-gun
			versions[i], errs[i] = c.Write(ctx, prev, values[i])
		})
	}
	close(gun)
	all.Wait()
	r, winner := Result{}, 0
	for i, err := range errs {
		switch {
		case err == nil:
			r.Winners++
			r.Version, winner = versions[i], i
		case errors.Is(err, driver.ErrConflict):
			r.Refused++
		default:
			r.Failed = err
		}
	}
	e, err := c.Read(ctx)
	if err != nil {
		r.Failed = err
		return r
	}
	r.settle(e, values, winner)
	return r
}

// settle compares the state after the race with the acknowledged one.
func (r *Result) settle(e driver.Entry, values [][]byte, winner int) {
	certain := r.Winners == 1 && r.Failed == nil
	switch {
	case e.Version == r.Version:
	case !certain:
		r.Version = e.Version
	default:
		r.Stale = true
		for i, value := range values {
			if i != winner && bytes.Equal(value, e.Value) {
				r.Overwritten, r.Stale, r.Version = true, false, e.Version
			}
		}
	}
}

// Prefix begins the keys of probes. No election should have such a name.
const Prefix = "tenure-doctor."

// NewKey returns the key of a new probe, which every store accepts.
func NewKey() string { return Prefix + strings.ToLower(rand.Text()[:12]) }

// format marks the values of probes.
const format = "tenure-probe/1"

// NewValue returns a value for the cell of a probe. It differs from all others.
func NewValue() []byte { return fmt.Appendf(nil, `{"format":%q,"nonce":%q}`, format, rand.Text()) }

// IsProbe reports whether a value is from NewValue. Lists of elections leave such cells out.
func IsProbe(value []byte) bool {
	var v struct{ Format string }
	return json.Unmarshal(value, &v) == nil && v.Format == format
}
