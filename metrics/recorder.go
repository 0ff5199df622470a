package metrics

import (
	"sync/atomic"
	"time"
)

// Recorder counts the events of one election, or in a summary those of all elections of its Set.
// Dropped and Called always count for the whole Set. Package tenure calls it; another
// implementation of elections can use it too. Its methods may be called concurrently. They take no
// lock and allocate nothing.
type Recorder struct {
	set        *Set
	name       string
	since      time.Time // when it began to count
	members    int       // how many share it; under the lock of the Set
	ended      [len(ends)]atomic.Uint64
	renewed    [len(lefts)]atomic.Uint64
	alarms     [len(alarmKinds)]atomic.Uint64
	leaderless atomic.Int64 // a time.Duration
}

// Ended counts the end of a term.
func (r *Recorder) Ended(why End) { r.ended[why].Add(1) }

// Renewed counts a confirmed renewal. Left is the time that was left until the former deadline, as
// a part of Lease less Margin, from 0 to 1.
func (r *Recorder) Renewed(left float64) { r.renewed[band(left)].Add(1) }

// Alarmed counts an alarm.
func (r *Recorder) Alarmed(kind Alarm) { r.alarms[kind].Add(1) }

// Leaderless adds a time in which this process saw no leader.
func (r *Recorder) Leaderless(d time.Duration) { r.leaderless.Add(int64(d)) }

// Dropped counts, for the Set, an event that was dropped.
func (r *Recorder) Dropped() { r.set.dropped.Add(1) }

// Called counts, for the Set, a call of the store, and records how long it took. It does not record
// the duration of a call without an answer.
func (r *Recorder) Called(op Operation, out Outcome, took time.Duration) {
	r.set.calls[op][out].Add(1)
	if out != Timeout && out != PoolBusy && out != Connecting {
		r.set.took[op].observe(took)
	}
}

// histogram counts durations in the buckets of callDuration.
type histogram struct {
	buckets [14]atomic.Uint64 // the last is beyond all bounds
	sum     atomic.Int64      // a time.Duration
}

var _ = [1]int{}[len(histogram{}.buckets)-14]

func (h *histogram) observe(took time.Duration) {
	i, seconds := 0, took.Seconds()
	for i < len(callDuration.Bounds) && seconds > callDuration.Bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(took))
}

// distribution returns a copy.
func (h *histogram) distribution() *Distribution {
	d := &Distribution{Counts: make([]uint64, len(h.buckets))}
	d.Sum = time.Duration(h.sum.Load()).Seconds()
	for i := range h.buckets {
		d.Counts[i] = h.buckets[i].Load()
	}
	return d
}
