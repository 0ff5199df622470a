package neli

import (
	"sync/atomic"
	"time"
)

// Deadline measures the interval between two checks for changes by Pulse: the last check is the
// last run. Its methods may be called from many goroutines.
type Deadline interface {
	// TryRun calls f if more than the interval has passed since the last run, and makes this call
	// the last run. It reports whether it called f.
	TryRun(f func()) bool
	// Elapsed returns the time since the last run.
	Elapsed() time.Duration
	// Expired reports whether more than the interval has passed since the last run.
	Expired() bool
	// Move sets the time of the last run.
	Move(to time.Time)
	// Last returns the time of the last run, time.Unix(0, 0) before the first.
	Last() time.Time
	// Remaining returns the rest of the interval; it is negative when the interval has passed.
	Remaining() time.Duration
}

type deadline struct {
	interval time.Duration
	last     atomic.Pointer[time.Time]
}

func newDeadline(interval time.Duration) *deadline {
	d := &deadline{interval: interval}
	d.Move(time.Unix(0, 0))
	return d
}

func (d *deadline) TryRun(f func()) bool {
	last, now := d.last.Load(), time.Now()
	if now.Sub(*last) <= d.interval || !d.last.CompareAndSwap(last, &now) {
		return false
	}
	f()
	return true
}

func (d *deadline) Elapsed() time.Duration   { return time.Since(d.Last()) }
func (d *deadline) Expired() bool            { return d.Elapsed() > d.interval }
func (d *deadline) Move(to time.Time)        { d.last.Store(&to) }
func (d *deadline) Last() time.Time          { return *d.last.Load() }
func (d *deadline) Remaining() time.Duration { return d.interval - d.Elapsed() }
