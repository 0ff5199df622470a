package schedule

import (
	"runtime"

	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// meter records the metrics of one job. Without a Set it records nothing.
type meter struct {
	job *metrics.Job // nil: none
}

// addMeters adds the jobs to the Set for as long as s is reachable.
func (s *Jobs) addMeters() {
	set := s.cfg.Metrics
	if set == nil {
		return
	}
	for _, j := range s.jobs {
		j.meter.job = set.AddJob(s.election, j.Name)
		runtime.AddCleanup(s, set.RemoveJob, j.meter.job)
	}
}

// count counts an event.
func (m meter) count(e *Event) {
	if m.job == nil {
		return
	}
	switch e.Kind {
	case EventStarted:
		m.job.Running(true)
	case EventFinished:
		m.ended(metrics.RunFinished)
	case EventFailed:
		m.ended(metrics.RunFailed)
	case EventLost:
		if e.Count == 0 { // the leader that settles the tick counts it
			m.job.Running(false)
			return
		}
		m.job.Ran(metrics.RunLost)
	case EventMissed:
		why := metrics.MissLate
		if e.Reason == ticks.ReasonOverlap {
			why = metrics.MissOverlap
		}
		m.job.Missed(why, e.Count)
	case EventClock:
		m.job.Warned(metrics.WarnClock)
	case EventHistory:
		m.job.Warned(metrics.WarnHistory)
	case EventTrouble:
		m.job.Warned(metrics.WarnTrouble)
	case EventPlan:
	}
}

func (m meter) ended(r metrics.Result) {
	m.job.Running(false)
	m.job.Ran(r)
}

// know records what the state in the store shows.
func (m meter) know(j *ticks.Job, s *ticks.State) {
	if m.job == nil || s == nil {
		return
	}
	f := metrics.JobFacts{Success: s.Success.Ended}
	j.Expect(s, f.Due[:])
	for i := range s.Ticks {
		t := &s.Ticks[i]
		switch t.State {
		case ticks.Started:
			continue
		case ticks.Lost:
			f.Loss = t.Ended
			continue
		case ticks.Failed:
			f.Failure = t.Ended
		case ticks.Finished:
		}
		f.Took = t.Ended.Sub(t.Began)
	}
	m.job.Know(f)
}

// rest notes that this process does not lead any more.
func (m meter) rest() {
	if m.job != nil {
		m.job.Know(metrics.JobFacts{})
	}
}
