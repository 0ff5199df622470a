package dashboard

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

const (
	// maxJobs bounds the jobs that are read and shown for one election.
	maxJobs = 200
	// A page asks at least every 30 s. Jobs are read until jobsWanted after it asked.
	jobsWanted = time.Minute
	// A job is read again after busyJobEvery if a run goes on or a tick is due, and otherwise after
	// idleJobEvery.
	busyJobEvery = listEvery
	idleJobEvery = time.Minute
	// maxJobReads is how many jobs are read at once.
	maxJobReads = 8
)

// jobs are the scheduled jobs of the elections of one source. A job is read while a page shows its
// election, and otherwise only once, to find that its key is none of an election.
type jobs struct {
	known   records.Jobs
	changed func(election string)
	wake    chan struct{}

	mu sync.Mutex
	of map[string]*jobsOf // by election
}

// jobsOf are the jobs of one election.
type jobsOf struct {
	asked time.Time // when a page last asked
	all   []jobRow  // in the order of their names
}

// jobRow is one job on the page.
type jobRow struct {
	Name string    `json:"name"`
	Read time.Time `json:"read,omitzero"` // when it was last read
	// Problem is why State is not up to date.
	Problem string       `json:"problem,omitempty"`
	State   *records.Job `json:"state,omitempty"`
}

func newJobs(changed func(election string)) *jobs {
	return &jobs{changed: changed, wake: make(chan struct{}, 1), of: map[string]*jobsOf{}}
}

// list takes the keys of all jobs that the store has now. It keeps what is known of them.
func (j *jobs) list(keys []string) {
	slices.Sort(keys)
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.of
	j.of = map[string]*jobsOf{}
	for _, key := range keys {
		election, name := records.SplitJob(key)
		of, was := j.of[election], before[election]
		if of == nil {
			of = &jobsOf{}
			j.of[election] = of
		}
		one := jobRow{Name: name}
		if was != nil {
			of.asked = was.asked
			if i, found := was.find(name); found {
				one = was.all[i]
			}
		}
		of.all = append(of.all, one)
	}
}

func (o *jobsOf) find(name string) (i int, found bool) {
	return slices.BinarySearchFunc(o.all, name, func(r jobRow, name string) int { return strings.Compare(r.Name, name) })
}

// rows returns the jobs of an election, and how many more there are. It makes them be read.
func (j *jobs) rows(election string, now time.Time) (rows []jobRow, more int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of := j.of[election]
	if of == nil {
		return []jobRow{}, 0
	}
	if now.Sub(of.asked) > jobsWanted {
		offer(j.wake, struct{}{})
	}
	of.asked = now
	shown := min(len(of.all), maxJobs)
	return slices.Clone(of.all[:shown]), len(of.all) - shown
}

// follow reads the jobs that pages show, until ctx ends.
func (j *jobs) follow(ctx context.Context, store driver.Store) {
	for {
		j.read(ctx, store)
		select {
		case <-time.After(busyJobEvery):
		case <-j.wake:
		case <-ctx.Done():
			return
		}
	}
}

// read reads the jobs that are due, and reports the elections whose jobs have changed.
func (j *jobs) read(ctx context.Context, store driver.Store) {
	var reads sync.WaitGroup
	slots := make(chan struct{}, maxJobReads)
	for election, names := range j.due(time.Now()) {
		changes := make([]bool, len(names))
		for i, name := range names {
			slots <- struct{}{}
			reads.Go(func() {
				defer func() { <-slots }()
				bounded, cancel := context.WithTimeout(ctx, lease)
				defer cancel()
				e, err := store.Read(bounded, records.JobKey(election, name))
				changes[i] = ctx.Err() == nil && j.note(election, name, e, err)
			})
		}
		reads.Wait()
		if slices.Contains(changes, true) {
			j.changed(election)
		}
	}
}

// due returns the jobs to read, by election.
func (j *jobs) due(now time.Time) map[string][]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	due := map[string][]string{}
	for election, of := range j.of {
		if now.Sub(of.asked) > jobsWanted {
			continue
		}
		for i := range of.all[:min(len(of.all), maxJobs)] {
			if r := &of.all[i]; r.due(now) {
				due[election] = append(due[election], r.Name)
			}
		}
	}
	return due
}

func (r *jobRow) due(now time.Time) bool {
	age := now.Sub(r.Read)
	return age >= idleJobEvery || age >= busyJobEvery && r.busy(now)
}

// busy reports whether the state is likely to change soon.
func (r *jobRow) busy(now time.Time) bool {
	s := r.State
	return s == nil || r.Problem != "" || !s.Next.IsZero() && !s.Next.After(now) ||
		slices.ContainsFunc(s.Ticks, func(t records.Tick) bool { return t.State == "started" })
}

// note keeps the answer of the store. It reports whether the page changes.
func (j *jobs) note(election, name string, e driver.Entry, err error) (changed bool) {
	next := jobRow{Name: name, Read: time.Now()}
	state, ok := records.ReadJob(e.Value)
	switch {
	case err != nil:
		next.Problem = troubleOf(err).Reason
	case e.Absent():
		next.Problem = "the job has no state in the store"
	case !ok:
		next.Problem = "the key holds bytes that are not the state of a job"
	default:
		next.State = &state
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	of := j.of[election]
	if of == nil {
		return false
	}
	i, found := of.find(name)
	if !found {
		return false
	}
	was := of.all[i]
	if err != nil { // it may still be so
		next.State = was.State
	}
	of.all[i] = next
	return was.Problem != next.Problem || (was.State == nil) != (next.State == nil) ||
		was.State != nil && !(was.State.Updated.Equal(next.State.Updated) && was.State.Token == next.State.Token)
}
