//go:build unix

package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule"
)

// Options say what to run and how.
type Options struct {
	Jobs []Job
	// Schedule has the settings that all jobs share.
	Schedule schedule.Config
	// Output is the directory of the files with the output of the runs. If it is empty, the output
	// goes to that of this process. Keep is the number of files for each job.
	Output string
	Keep   int
	// Unset are variables of this process's environment that commands do not get.
	Unset []string
	// StopWithin is that of the election's Config. Needs is how much of the lease must be left when
	// a run starts.
	StopWithin, Needs time.Duration
	// Guard returns the command line of a guard, which must call guard.Main.
	Guard func() *exec.Cmd
	Log   *slog.Logger
	// Quit ends this process at once, without a release.
	Quit func(code int)
}

// Scheduler is a candidate that runs the commands of jobs while it leads.
type Scheduler struct {
	Options
	paths   map[string]string // of the programs, by job
	pool    pool
	kept    kept
	id      string // of the candidate
	term    atomic.Pointer[tenure.Term]
	request guarded.Request
	ctx     context.Context // the campaign
	leave   context.CancelFunc
}

// New finds the programs, and starts a guard. It returns an error and its exit code if one of them
// fails.
func New(o Options) (s *Scheduler, code int, err error) {
	s = &Scheduler{Options: o, paths: map[string]string{}}
	if o.Output != "" {
		if s.kept.dir, err = filepath.Abs(o.Output); err != nil {
			return nil, guarded.CodeFailed, err
		}
		s.kept.most = o.Keep
	}
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if s.paths[j.Name], code, err = guarded.Find(j.Command[0]); err != nil {
			return nil, code, fmt.Errorf("job %q: %w", j.Name, err)
		}
	}
	guard.Adopt()
	s.pool = pool{command: o.Guard, piped: len(o.Jobs) > 1 && o.Output == "", failed: func(err error) {
		o.Log.Warn("there is no spare guard: the next run starts one", "cause", err)
	}}
	if s.pool.spare, err = s.pool.start(); err != nil {
		return nil, guarded.CodeFailed, err
	}
	s.ctx, s.leave = context.WithCancel(context.Background())
	return s, 0, nil
}

// Close ends the spare guard. Call it after Run.
func (s *Scheduler) Close() { s.pool.close() }

// Context ends when a signal has asked this process to end.
func (s *Scheduler) Context() context.Context { return s.ctx }

// Signals are those that Hear takes.
var Signals = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// Hear reacts to a signal. The first one ends the campaign: nothing more starts, and commands may
// finish. A second one kills them at once.
func (s *Scheduler) Hear(signal syscall.Signal) {
	if s.request.Hear(signal) {
		s.Log.Info("tenure is asked to end: no more ticks start", "signal", signal.String())
		s.leave()
	}
}

// startUp is the time after which a candidate has started up. Connecting to the store needs memory
// that waiting does not.
const startUp = 5 * time.Second

// Run takes part in the election until a signal was received and the commands have ended.
func (s *Scheduler) Run(e *tenure.Election, store driver.Store) error {
	planned, err := plan(store, e.Name(), s.Schedule, s.Jobs, s.Needs, func(j *Job) work {
		return func(ctx context.Context, t schedule.Tick) error { return s.run(ctx, j, t) }
	})
	if err != nil {
		return err
	}
	s.id = e.ID()
	defer guard.KeepSmall(startUp)()
	return e.Run(s.ctx, func(ctx context.Context, t *tenure.Term) error {
		defer guarded.HoldTerminal()()
		s.term.Store(t)
		return planned.Lead(ctx, t)
	})
}

// run runs the command of a tick. It returns when neither the command nor a descendant of it is
// left.
func (s *Scheduler) run(ctx context.Context, j *Job, t schedule.Tick) error {
	log := s.Log.With("job", t.Job, "planned", t.Planned, "token", t.Token)
	file, err := s.kept.open(t.Job, t.Planned)
	if err != nil {
		return fmt.Errorf("keep the output: %w", err)
	}
	w, err := s.pool.take()
	if err != nil {
		return err
	}
	defer s.pool.done(w)
	s.pool.show(w, t.Job+": ")
	command := guard.NewCommand(s.paths[t.Job], j.Command, s.environment(t))
	command.Output = []byte(file)
	r := guarded.Run{
		Guard: w.Guard, Term: s.term.Load(), Command: command, StopWithin: s.StopWithin, KillAfter: s.StopWithin,
		Request: &s.request, Log: log, Level: slog.LevelDebug, Quit: func() { s.Quit(guarded.CodeFailed) },
	}
	r.Follow(ctx)
	if file != "" {
		if err := s.kept.prune(file); err != nil {
			log.Warn("older output cannot be removed", "cause", err)
		}
	}
	return r.Err()
}

func (s *Scheduler) environment(t schedule.Tick) []string {
	return guarded.Environment(s.Unset,
		"TENURE_ELECTION="+s.term.Load().Election(), "TENURE_ID="+s.id, fmt.Sprint("TENURE_TOKEN=", t.Token),
		"TENURE_JOB="+t.Job, "TENURE_TICK="+t.Planned.UTC().Format(time.RFC3339), fmt.Sprint("TENURE_ATTEMPT=", t.Attempt))
}
