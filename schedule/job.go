package schedule

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule/internal/calendar"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// Job is work with a schedule. Every, Named and Do set what each job needs. The zero value of each
// other field is its default. Give all members of an election the same jobs.
type Job struct {
	// Name is part of the key in the store, and unique within the election: up to 64 letters,
	// digits, hyphens, underscores and dots.
	Name string
	// Spec has five fields: minute, hour, day of month, month and day of week; or it is a name such
	// as @daily; or an interval of whole seconds, such as @every 10s, whose instants are multiples
	// since the Unix epoch. If both days are restricted, either one suffices.
	Spec string
	// Zone is the time zone of Spec; nil is UTC. An interval has none. The zone of the machine,
	// time.Local, is an error, because it may differ between members.
	Zone *time.Location
	// Run is the work. Its context ends with the term, before another leader can start a tick, and
	// after Timeout. A run that returns an error has failed, and is not repeated.
	Run func(context.Context, Tick) error

	// AtLeastOnce repeats a tick whose leader's term ended before the end of its run was recorded,
	// if it was planned within Window. The first run may have done all of its work. Without it, the
	// tick counts as lost.
	AtLeastOnce bool
	// CatchUp says which ticks run late if no leader waited for them, as in a failover. The default
	// is the last one.
	CatchUp CatchUp
	// Queue makes a tick that comes due during a run wait for its end. By default it is missed. In
	// both cases runs of one job never overlap.
	Queue bool
	// Window is how late a tick may start: by default 1 h.
	Window time.Duration
	// Timeout ends the context of a run, which then counts as failed. Zero: there is no limit but
	// the term.
	Timeout time.Duration
	// Needs is how much of the lease must be left when a run starts. Keep it below two thirds of
	// the lease.
	Needs time.Duration
}

// CatchUp says which of the ticks that no leader waited for run late.
type CatchUp uint8

// The choices.
const (
	CatchUpLast CatchUp = iota // the last one, unless a newer tick is due
	CatchUpNone                // none
	CatchUpAll                 // all, in order, one after the other
)

// Tick is one run of a job.
type Tick struct {
	Job string
	// Planned identifies the tick, unless it has a Name. Of an Invocation it is the start.
	Planned time.Time
	// Name is Invocation.Tick.
	Name string
	// Attempt is 1, or higher if an earlier run of this tick was lost (AtLeastOnce).
	Attempt int
	// Token is the fencing token of the leader's term.
	Token uint64
}

// Every returns a job with this schedule: see Job.Spec.
func Every(spec string) Job { return Job{Spec: spec} }

// Named returns the job with this name.
func (j Job) Named(name string) Job {
	j.Name = name
	return j
}

// Do returns the job with this work: see Job.Run.
func (j Job) Do(run func(context.Context, Tick) error) Job {
	j.Run = run
	return j
}

// key returns the key of the job's state.
func key(election, job string) string { return election + "/jobs/" + job }

// job is a Job in this process.
type job struct {
	Job
	key   string
	ticks *ticks.Job
	meter meter
	// passing: a goroutine reads and writes, and owns ticks until it is done.
	passing bool
	// ended is the result of a run that has not been passed to ticks yet.
	ended    *result
	failures int       // passes that failed in a row
	retry    time.Time // no pass before it
	due      time.Time // of the next pass, by the wall clock
	place    int       // in the queue; -1: in none
}

func (s *Jobs) newJob(j Job) (*job, error) {
	if j.Zone == nil {
		j.Zone = time.UTC
	}
	if err := j.check(); err != nil {
		return nil, fmt.Errorf("schedule: job %q: %w", j.Name, err)
	}
	plan, err := calendar.Parse(j.Spec, j.Zone)
	if err != nil {
		return nil, fmt.Errorf("schedule: job %q: %w", j.Name, err)
	}
	return s.own(j, ticks.Policy{Plan: plan.String(), Next: plan.Next, CatchUp: ticks.CatchUp(j.CatchUp), Queue: j.Queue})
}

// own completes the policy of a job, which says when it runs.
func (s *Jobs) own(j Job, p ticks.Policy) (*job, error) {
	if j.Window == 0 {
		j.Window = time.Hour
	}
	own := &job{Job: j, key: key(s.election, j.Name)}
	if b := driver.AbilitiesOf(s.store).Bounded; b != nil {
		if err := b.CheckKey(own.key); err != nil {
			return nil, fmt.Errorf("schedule: job %q: the store cannot hold the key %q: %w", j.Name, own.key, err)
		}
	}
	p.AtLeastOnce, p.Window, p.ClockOffset, p.Needs, p.Nonce = j.AtLeastOnce, j.Window, s.cfg.ClockOffset, j.Needs, nonce
	own.ticks = ticks.New(p)
	return own, nil
}

func (j *Job) check() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	switch {
	case j.Name == "" || len(j.Name) > 64 || strings.Trim(j.Name, letters) != "":
		return errors.New("the name must have 1 to 64 letters, digits, hyphens, underscores and dots")
	case len(j.Spec) > 256:
		return errors.New("the schedule has more than 256 bytes")
	case j.Run == nil:
		return errors.New("it has no work: call Do")
	case j.CatchUp > CatchUpAll:
		return fmt.Errorf("CatchUp %d is none of the choices", j.CatchUp)
	case j.Window < 0 || j.Timeout < 0 || j.Needs < 0:
		return errors.New("Window, Timeout and Needs must not be negative")
	}
	return nil
}

// nonce returns 64 random bits.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
