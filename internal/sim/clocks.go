package main

import (
	"time"

	"github.com/tenure-go/tenure/clock"
)

// machineClocks are the clocks of one simulated machine. Their rates change now and then. On a
// suspended machine the monotonic clocks stand still, on a frozen one all do.
type machineClocks struct {
	last            time.Duration // true time of the last change of rates
	reading         clock.Reading // the reading then
	mono, raw, boot float64       // local seconds per true second
	asleep          bool          // suspended: the hardware's rates come back when it wakes
}

// epoch is the start of the wall clocks. Nothing depends on it.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *machineClocks) at(t time.Duration) clock.Reading {
	d := float64(t - c.last)
	return clock.Reading{
		Instant: clock.Instant{
			Mono: c.reading.Mono + time.Duration(d*c.mono),
			Raw:  c.reading.Raw + time.Duration(d*c.raw),
			Boot: c.reading.Boot + time.Duration(d*c.boot),
		},
		Wall: epoch,
	}
}

// set changes the rates from now on.
func (c *machineClocks) set(t time.Duration, mono, raw, boot float64) {
	c.reading = c.at(t)
	c.last, c.mono, c.raw, c.boot = t, mono, raw, boot
}

// step sets the clock that also counts suspended time. On a system without a better clock, this is
// the wall clock.
func (c *machineClocks) step(t, d time.Duration) {
	c.set(t, c.mono, c.raw, c.boot)
	c.reading.Boot += d
}

// retune draws new rates: the hardware's within the promised bound, often at its very edge, and
// CLOCK_MONOTONIC's far beyond it, by a time daemon.
func (w *world) retune(p *process) {
	off := w.cfg.Drift * p.bound
	raw := 1 + off*(2*w.rng.Float64()-1)
	if w.chance(0.5) {
		raw = 1 + off*float64(1-2*w.rng.IntN(2))
	}
	// CLOCK_BOOTTIME is slewed like CLOCK_MONOTONIC, and differs from it only by the time asleep.
	mono := raw
	if w.plan.slew && w.chance(0.5) {
		mono = raw * (1 + slew*max(-1, min(1, 3*w.rng.Float64()-1.5)))
	}
	p.clocks.set(w.now, mono, raw, mono)
}

// bind gives the i-th process the bound that it states for its clocks. The clocks keep the bound.
func (w *world) bind(p *process, i int) {
	p.bound = drift
	if w.plan.bounds && i > 0 {
		p.bound = [...]float64{loose, drift * 3, loose, drift}[(i-1+w.extra.rng.IntN(2))%4]
	}
	// An older release states no bound, and waits for the lease alone. So only a process with the
	// smallest bound may be one.
	p.silent = w.plan.silent && p.bound == drift
}

// widest returns the largest bound that a process may state.
func (p *plan) widest() float64 {
	if p.bounds {
		return loose
	}
	return drift
}

// origin draws a machine's clock readings at its start, which may also be negative.
func (w *world) origin() clock.Reading {
	any := func() time.Duration { return time.Duration(w.rng.Int64N(int64(2e6*time.Hour))) - 1e6*time.Hour }
	return clock.Reading{Instant: clock.Instant{Mono: any(), Raw: any(), Boot: any()}}
}
