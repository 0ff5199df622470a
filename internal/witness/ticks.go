package witness

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Run is one run of a tick of a scheduled job. Runs with equal fields are one run.
type Run struct {
	Job string
	// Planned is the planned instant, in seconds since the Unix epoch.
	Planned int64
	// Again: lost ticks of the job run again.
	Again   bool
	Attempt int
	Token   uint64
	Who     string
	// Number tells runs of one process apart.
	Number int
}

// Ticks keeps the acts of the runs of scheduled jobs. The zero Ticks is empty. Several goroutines
// may use it.
type Ticks struct {
	mu      sync.Mutex
	runs    map[Run]*Span
	excused []int64 // a tick planned until then may run twice
}

// Add notes an act of a run. Stamps are nanoseconds of a clock that all processes share, read
// before the run asked whether it may act.
func (b *Ticks) Add(r Run, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.runs[r]
	if s == nil {
		if b.runs == nil {
			b.runs = map[Run]*Span{}
		}
		s = &Span{Who: r.Who, Token: r.Token, First: at, Last: at}
		b.runs[r] = s
	}
	s.First, s.Last = min(s.First, at), max(s.Last, at)
}

// Excuse lets ticks that are planned until an instant run twice: the store was restored, and no
// process could notice it. The verdict counts them apart.
func (b *Ticks) Excuse(planned int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.excused = append(b.excused, planned)
}

// Begun returns the number of runs of a job with their first act after a moment.
func (b *Ticks) Begun(job string, after int64) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, s := range b.runs {
		if r.Job == job && s.First > after {
			n++
		}
	}
	return n
}

// TickVerdict counts the faults in the runs of jobs.
type TickVerdict struct {
	Runs int
	// Overlapping counts the runs that began before the last act of another run of their job, and
	// Overlap is the longest time between these two acts.
	Overlapping int
	Overlap     time.Duration
	// Repeated counts the runs of a tick after the first one. Of a job whose lost ticks run again,
	// only those count whose attempt is not above all before.
	Repeated int
	// Excused are runs that would be Repeated, and are excused.
	Excused int
	// First describes the first fault.
	First string
}

// Safe reports whether nothing is wrong.
func (v TickVerdict) Safe() bool { return v.Overlapping == 0 && v.Repeated == 0 }

func (v TickVerdict) String() string {
	s := fmt.Sprintf("%d of %d runs overlap, by up to %v; %d ticks were repeated, and %d more after a restore that no process could notice",
		v.Overlapping, v.Runs, v.Overlap, v.Repeated, v.Excused)
	if v.First != "" {
		s += "; first " + v.First
	}
	return s
}

// judged is a run with its acts.
type judged struct {
	Run
	*Span
}

func (r judged) String() string {
	return fmt.Sprintf("%s at %d, attempt %d with token %d of %s (acts %d to %d)", r.Job, r.Planned, r.Attempt, r.Run.Token, r.Run.Who, r.First, r.Last)
}

// Judge judges all acts noted so far.
func (b *Ticks) Judge() (v TickVerdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []judged
	for r, s := range b.runs {
		all = append(all, judged{r, s})
	}
	slices.SortFunc(all, func(a, b judged) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last)) })
	fault := func(text string, a, b judged) {
		if v.First == "" {
			v.First = fmt.Sprint(text, ": ", a, ", and ", b)
		}
	}
	last := map[string]judged{} // by job: the run with the last act
	seen := map[Run]judged{}    // by job and planned instant: the highest attempt
	for _, r := range all {
		v.Runs++
		if before, ok := last[r.Job]; ok && before.Last >= r.First {
			v.Overlapping++
			v.Overlap = max(v.Overlap, time.Duration(before.Last-r.First))
			fault("two runs at once", before, r)
		}
		if before, ok := last[r.Job]; !ok || before.Last < r.Last {
			last[r.Job] = r
		}
		tick := Run{Job: r.Job, Planned: r.Planned}
		before, ran := seen[tick]
		switch {
		case !ran || r.Again && r.Attempt > before.Attempt:
		case slices.ContainsFunc(b.excused, func(until int64) bool { return r.Planned <= until }):
			v.Excused++
		default:
			v.Repeated++
			fault("a tick twice", before, r)
		}
		if !ran || r.Attempt > before.Attempt {
			seen[tick] = r
		}
	}
	return v
}
