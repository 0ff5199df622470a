// Package doctor examines a store: everything worth knowing before elections are held on it.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/race"
)

// Status is the result of a check.
type Status string

// The results, the worst last. A check that could not be made is Unknown.
const (
	OK      Status = "ok"
	Unknown Status = "unknown"
	Warning Status = "warning"
	Unsafe  Status = "unsafe"
)

var rank = map[Status]int{OK: 0, Unknown: 1, Warning: 2, Unsafe: 3}

// Row is one check.
type Row struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Seen describes the finding, Remedy the way out; empty if there is none.
	Seen   string `json:"seen"`
	Remedy string `json:"remedy,omitempty"`

	// measured: Seen holds figures that differ each time.
	measured bool
}

// Latency is the distribution of some calls, in milliseconds.
type Latency struct {
	Calls  int     `json:"calls"`
	Failed int     `json:"failed,omitempty"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Report is the result of one examination.
type Report struct {
	// Verdict is the worst status.
	Verdict Status `json:"verdict"`
	Checks  []Row  `json:"checks"`
	// Reads, Writes and Pushes are nil where no call succeeded.
	Reads  *Latency `json:"readsMillis,omitempty"`
	Writes *Latency `json:"writesMillis,omitempty"`
	Pushes *Latency `json:"pushesMillis,omitempty"`
	// ShortestLeaseMillis and FailoverMillis are 0 if they are not known. FailoverMillis is that of
	// the shortest lease.
	ShortestLeaseMillis int64 `json:"shortestLeaseMillis,omitempty"`
	FailoverMillis      int64 `json:"failoverMillis,omitempty"`
	// DollarsPerMonth is nil if no price is known.
	DollarsPerMonth *float64 `json:"dollarsPerMonth,omitempty"`
	// Left is the key of the cell that stays in the store, or may; empty: none.
	Left string `json:"left,omitempty"`
}

// Changed returns the checks that have another result than before, apart from the figures of a
// measurement.
func (r *Report) Changed(before *Report) (all []Row) {
	type result struct{ check, status, seen string }
	of := func(row Row) result {
		if row.measured {
			row.Seen = ""
		}
		return result{row.Check, string(row.Status), row.Seen}
	}
	was := map[result]bool{}
	for _, row := range before.Checks {
		was[of(row)] = true
	}
	for _, row := range r.Checks {
		if !was[of(row)] {
			all = append(all, row)
		}
	}
	return all
}

// Doctor examines one store. Its methods may be called again, one at a time.
type Doctor struct {
	Store driver.Store
	// Election is the one whose rights are checked; empty: the rights to the cell of the probe are.
	Election string
	// Lease is the intended lease.
	Lease time.Duration
	// Prices are those of requests; Billed: this kind of store bills for them.
	Prices kind.Prices
	Billed bool
	// Pace is the shortest time between two writes to a cell that the store takes; 0: any.
	Pace time.Duration
	// Explain returns an error of the store with a hint.
	Explain func(error) error
	// Key is that of the cell of the probe, such as race.NewKey returns.
	Key string

	able   driver.Abilities
	clock  clock.Clock
	report *Report
	// unsure: only a write shows whether the right to write is missing. denied: a right is.
	unsure, denied bool
}

// Examine makes all checks. They take some seconds, longer on a slow store. If ctx ends, the checks
// that were not made are Unknown.
func (d *Doctor) Examine(ctx context.Context) *Report {
	d.able, d.clock, d.report = driver.AbilitiesOf(d.Store), clock.Default(), &Report{}
	d.unsure, d.denied = false, false
	began := d.clock.Now()
	for _, check := range []func(context.Context){
		d.checkRights, d.checkSettings, d.checkConditions, d.measureReads, d.measureWrites,
	} {
		check(ctx)
	}
	d.findLeft(ctx)
	d.judgeLease()
	d.checkClock(began.Instant)
	d.checkCost()
	d.report.Verdict = d.report.worst()
	return d.report
}

// findLeft finds out whether the cell of the probe is there.
func (d *Doctor) findLeft(ctx context.Context) {
	_ = bounded(ctx, func(ctx context.Context) error {
		// without an answer it may be there
		if e, err := d.Store.Read(ctx, d.Key); err != nil || !e.Absent() {
			d.report.Left = d.Key
		}
		return nil
	})
}

func (r *Report) worst() Status {
	worst := OK
	for _, row := range r.Checks {
		if rank[row.Status] > rank[worst] {
			worst = row.Status
		}
	}
	return worst
}

func (d *Doctor) row(check string, status Status, remedy, seen string, args ...any) {
	d.report.Checks = append(d.report.Checks, Row{Check: check, Status: status, Seen: fmt.Sprintf(seen, args...), Remedy: remedy})
}

func (d *Doctor) measurement(check string, status Status, remedy, seen string, args ...any) {
	d.row(check, status, remedy, seen, args...)
	d.report.Checks[len(d.report.Checks)-1].measured = true
}

// unknown adds a check that could not be made. A missing right, or an unfit store, is described
// once.
func (d *Doctor) unknown(check string, err error) {
	switch {
	case d.denied && errors.Is(err, driver.ErrDenied):
		d.row(check, Unknown, "", "could not be checked: a right is missing, see above")
		return
	case errors.Is(err, driver.ErrUnfit):
		d.row(check, Unknown, "", "could not be checked: the store is unfit, see "+conditions)
		return
	}
	text, remedy := d.explain(err)
	d.row(check, Unknown, remedy, "could not be checked: %s", text)
}

// explain returns an error for people, and its remedy.
func (d *Doctor) explain(err error) (text, remedy string) {
	if d.Explain != nil {
		err = d.Explain(err)
	}
	var f *fault.Error
	if errors.As(err, &f) {
		remedy = f.Hint
	}
	return fault.Masked(err.Error()), remedy
}

// within bounds one call of the store, and longWithin those that make many requests.
const (
	within     = 10 * time.Second
	longWithin = time.Minute
)

func bounded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return call(ctx)
}

// checkRights makes a row for each right. That to write is also shown by the probe.
func (d *Doctor) checkRights(ctx context.Context) {
	// Without the right to the cell of the probe, a candidate may still have that to its election.
	key, severity := d.Key, Warning
	if d.Election != "" {
		key, severity = d.Election, Unsafe
	}
	if err := bounded(ctx, func(ctx context.Context) (err error) { _, err = d.Store.Read(ctx, key); return err }); err != nil {
		d.refused("right to read", severity, err)
	} else {
		d.row("right to read", OK, "", "%q can be read", key)
	}
	err := bounded(ctx, func(ctx context.Context) error { return d.able.CheckRights(ctx, key) })
	switch {
	case err == nil:
		d.row("right to write", OK, "", "%q may be written, as far as a check without a write shows", key)
	case errors.Is(err, errors.ErrUnsupported):
		d.unsure = true
	default:
		d.refused("right to write", severity, err)
	}
	var names []string
	err = bounded(ctx, func(ctx context.Context) (err error) { names, err = d.able.Keys(ctx); return err })
	switch {
	case err == nil:
		d.row("right to list", OK, "", "keys: %d", len(names))
		d.report.Checks[len(d.report.Checks)-1].measured = true
	case errors.Is(err, errors.ErrUnsupported):
		d.row("right to list", Unknown, "name elections with --election", "this store cannot list its keys")
	default:
		d.refused("right to list", Warning, err)
	}
}

// refused adds a check that failed with status if the store refused it for good.
func (d *Doctor) refused(check string, status Status, err error) {
	if !errors.Is(err, driver.ErrDenied) {
		d.unknown(check, err)
		return
	}
	d.denied = true
	text, remedy := d.explain(err)
	d.row(check, status, remedy, "%s", text)
}

// checkSettings makes a row for each finding.
func (d *Doctor) checkSettings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longWithin)
	defer cancel()
	if d.able.Inspector == nil {
		d.row("settings", Unknown, "", "this store has no check of its settings")
		return
	}
	found, err := d.able.Inspect(ctx, d.Lease)
	if err != nil {
		d.unknown("settings", err)
		return
	}
	if len(found) == 0 {
		d.row("settings", OK, "", "nothing unsafe is found")
	}
	for _, f := range found {
		d.finding("settings", f)
	}
}

// finding adds a row. Advice is no fault.
func (d *Doctor) finding(check string, f driver.Finding) {
	status := map[driver.Severity]Status{driver.Warning: Warning, driver.Unsafe: Unsafe}[f.Severity]
	if status == "" {
		status = OK
	}
	seen := f.Problem
	if f.Setting != check {
		seen = f.Setting + ": " + seen
	}
	if f.Severity == driver.Advice {
		seen = "advice: " + seen
	}
	d.row(check, status, f.Remedy, "%s", seen)
}

const conditions = "conditional writes"

// checkConditions races writers. See race.Probe.
func (d *Doctor) checkConditions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longWithin)
	defer cancel()
	decided, found, err := race.Probe(ctx, d.Store, d.Key)
	if d.unsure && err != nil {
		d.refused("right to write", Warning, err) // of the cell of the probe
	} else if d.unsure {
		d.row("right to write", OK, "", "writes of the probe succeeded")
	}
	if err != nil {
		d.unknown(conditions, err)
		return
	}
	for _, f := range found {
		d.finding(conditions, f)
	}
	if len(found) == 0 && 2*decided < race.Rounds {
		d.row(conditions, Warning, "run it again when the store is less busy", "only %d of %d races were decided", decided, race.Rounds)
	} else if len(found) == 0 {
		d.row(conditions, OK, "", "%d of %d races of %d had one winner; old versions were refused",
			decided, race.Rounds, race.Contenders)
	}
}

// Inspect makes the checks that decide whether a store is unsafe: its own Inspect, and the race of
// conditional writes on a cell that all such calls share. If the race cannot be made, undecided is
// the reason.
func Inspect(ctx context.Context, s driver.Store, lease time.Duration) (found []driver.Finding, undecided, err error) {
	found, err = driver.AbilitiesOf(s).Inspect(ctx, lease)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longWithin)
	defer cancel()
	_, raced, undecided := race.Probe(ctx, s, race.Prefix+"inspect")
	return append(found, raced...), undecided, nil
}

// config returns the settings behind the times in the report.
func (d *Doctor) config(lease time.Duration) tenure.Config {
	return tenure.Config{Lease: lease}.WithDefaults()
}
