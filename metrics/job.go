package metrics

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// jobName is the label of a scheduled job's name. Prometheus uses the label job itself.
const jobName = "job_name"

// jobDefinitions are the metrics of scheduled jobs.
var jobDefinitions = []*Definition{
	{
		Name: "tenure_job_running", Key: key, JobKey: jobName,
		Help:    "1 while this process runs the job, else 0.",
		readJob: func(r *jobReading, yield func(string, float64)) { yield("", float64(r.running)) },
	},
	{
		Name: "tenure_job_runs_total", Kind: Counter, Key: key, JobKey: jobName, Label: "result",
		Help:    "Runs of the job that this process ended, or found to be lost, by the result.",
		readJob: func(r *jobReading, yield func(string, float64)) { counts(results[:], r.runs[:], yield) },
	},
	{
		Name: "tenure_job_missed_ticks_total", Kind: Counter, Key: key, JobKey: jobName, Label: "reason",
		Help:    "Ticks that this process skipped, by the reason.",
		readJob: func(r *jobReading, yield func(string, float64)) { counts(misses[:], r.missed[:], yield) },
	},
	{
		Name: "tenure_job_warnings_total", Kind: Counter, Key: key, JobKey: jobName, Label: "kind",
		Help:    "Warnings: the clocks of members differ, the history of the store changed, or the state of the job cannot be used.",
		readJob: func(r *jobReading, yield func(string, float64)) { counts(warnings[:], r.warned[:], yield) },
	},
	{
		Name: "tenure_job_last_success_timestamp_seconds", Unit: "s", Key: key, JobKey: jobName, Scope: Detail,
		Help:    "When the last successful run ended, as far as this process knows; 0 if it knows of none.",
		readJob: func(r *jobReading, yield func(string, float64)) { yield("", unix(r.facts.Success)) },
	},
	{
		Name: "tenure_job_last_failure_timestamp_seconds", Unit: "s", Key: key, JobKey: jobName, Label: "result", Scope: Detail,
		Help: "When the last run ended that failed or was lost, as far as this process knows; 0 if it knows of none.",
		readJob: func(r *jobReading, yield func(string, float64)) {
			yield(results[RunFailed], unix(r.facts.Failure))
			yield(results[RunLost], unix(r.facts.Loss))
		},
	},
	{
		Name: "tenure_job_due_timestamp_seconds", Unit: "s", Key: key, JobKey: jobName, Label: "tick", Scope: Detail,
		Help: "The planned instants of the ticks after that of the last success, as far as this process knows; 0 if it knows none.",
		readJob: func(r *jobReading, yield func(string, float64)) {
			for i, t := range r.facts.Due {
				yield(dues[i], unix(t))
			}
		},
	},
	{
		Name: "tenure_job_last_duration_seconds", Unit: "s", Key: key, JobKey: jobName, Scope: Detail,
		Help:    "How long the last run took that ended with a result; 0 in a process that does not lead.",
		readJob: func(r *jobReading, yield func(string, float64)) { yield("", r.facts.Took.Seconds()) },
	},
}

// Result is how a run of a scheduled job ended.
type Result uint8

// The results.
const (
	RunFinished Result = iota
	RunFailed          // it returned an error, or took too long
	RunLost            // its leader's term ended before the end of the run was recorded
)

var results = [...]string{"finished", "failed", "lost"}

// Miss is why a tick of a scheduled job never started.
type Miss uint8

// The reasons.
const (
	MissLate    Miss = iota // no leader waited for it
	MissOverlap             // it came due during a run
)

var misses = [...]string{"late", "overlap"}

// Warning is a problem of a scheduled job.
type Warning uint8

// The kinds of warning.
const (
	WarnClock   Warning = iota // the wall clocks of two members differ too much
	WarnHistory                // the job is new, or the history of the store changed
	WarnTrouble                // the state of the job cannot be read, written or understood
)

var warnings = [...]string{"clock", "history", "trouble"}

// JobFacts are those that a leader knows of a scheduled job from its state in the store. Zero: it
// is not known.
type JobFacts struct {
	// Success, Failure and Loss are when the last run ended that finished, failed or was lost.
	Success, Failure, Loss time.Time
	// Due are the planned instants of the first ticks after that of the last success. Before the
	// first success they count from when the job began.
	Due [3]time.Time
	// Took is how long the last run took that finished or failed.
	Took time.Duration
}

var dues = [len(JobFacts{}.Due)]string{"1", "2", "3"}

// jobSeries counts for the jobs of one election and one name.
type jobSeries struct {
	election, job string
	since         time.Time
	members       int // how many share it; under the lock of the Set
	runs          [len(results)]atomic.Uint64
	missed        [len(misses)]atomic.Uint64
	warned        [len(warnings)]atomic.Uint64
}

// Job is the part of this process in one scheduled job of a Set. Package schedule calls it. Its
// methods may be called concurrently, except Know.
type Job struct {
	series  *jobSeries
	running atomic.Bool
	facts   atomic.Pointer[JobFacts]
}

// AddJob adds a scheduled job to the Set. Package schedule calls it for each job whose Config has
// the Set. Several jobs of one name in one election count together.
func (s *Set) AddJob(election, job string) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.summary {
		election, job = "", ""
	}
	of := [2]string{election, job}
	series := s.byJob[of]
	if series == nil {
		of = [2]string{strings.Clone(election), strings.Clone(job)}
		series = &jobSeries{election: of[0], job: of[1], since: time.Now()}
		s.byJob[of] = series
	}
	series.members++
	j := &Job{series: series}
	s.jobs[j] = struct{}{}
	return j
}

// RemoveJob takes a job out of the Set, with its series if no other job has its names. In a summary
// its counts stay in the sums.
func (s *Set) RemoveJob(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.jobs[j]; !ok {
		return
	}
	delete(s.jobs, j)
	j.series.members--
	if j.series.members == 0 && !s.summary {
		delete(s.byJob, [2]string{j.series.election, j.series.job})
	}
}

// Running sets whether this process runs the job.
func (j *Job) Running(now bool) { j.running.Store(now) }

// Ran counts a run.
func (j *Job) Ran(r Result) { j.series.runs[r].Add(1) }

// Missed counts ticks that never start.
func (j *Job) Missed(why Miss, n int) { j.series.missed[why].Add(uint64(n)) }

// Warned counts a warning.
func (j *Job) Warned(kind Warning) { j.series.warned[kind].Add(1) }

// Know adds to what this process knows. Later times replace earlier ones, which stay true: a store
// that lost its state, and the end of leadership, take none away. Took is replaced.
func (j *Job) Know(f JobFacts) {
	known := j.known()
	f.merge(&known)
	j.facts.Store(&f)
}

func (j *Job) known() JobFacts {
	if f := j.facts.Load(); f != nil {
		return *f
	}
	return JobFacts{}
}

// merge takes the later times of both.
func (f *JobFacts) merge(other *JobFacts) {
	f.Success = later(f.Success, other.Success)
	f.Failure = later(f.Failure, other.Failure)
	f.Loss = later(f.Loss, other.Loss)
	for i, t := range other.Due {
		f.Due[i] = later(f.Due[i], t)
	}
}

// jobReading is the state of all jobs of one series.
type jobReading struct {
	*jobSeries
	running int
	facts   JobFacts
}

// collectJobs reads the states of all jobs, in the order of their names.
func (s *Set) collectJobs() []*jobReading {
	s.mu.Lock()
	defer s.mu.Unlock()
	readings := make(map[*jobSeries]*jobReading, len(s.byJob))
	all := make([]*jobReading, 0, len(s.byJob))
	for _, series := range s.byJob {
		r := &jobReading{jobSeries: series}
		readings[series], all = r, append(all, r)
	}
	for j := range s.jobs {
		readings[j.series].add(j.running.Load(), j.known())
	}
	slices.SortFunc(all, func(a, b *jobReading) int {
		if by := strings.Compare(a.election, b.election); by != 0 {
			return by
		}
		return strings.Compare(a.job, b.job)
	})
	return all
}

func (r *jobReading) add(running bool, f JobFacts) {
	if running {
		r.running++
	}
	r.facts.merge(&f)
	r.facts.Took = max(r.facts.Took, f.Took)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// unix returns the seconds since 1970, or 0 for the zero time.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
