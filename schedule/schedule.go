package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/metrics"
)

// Config holds the settings of the jobs of one election. The zero value of each field is its
// default.
type Config struct {
	// ClockOffset is how far the wall clock of each member may be off: by default 10 s, at most
	// 10 min. The promise depends on it when the store loses its history. A larger difference
	// between two members raises EventClock.
	ClockOffset time.Duration
	// Logger logs each event. The default discards.
	Logger *slog.Logger
	// OnEvent is called for each event, one at a time. It must return at once: it delays ticks.
	OnEvent func(Event)
	// Metrics collects the metrics of the jobs. Use the Set of the election. By default nothing
	// does.
	Metrics *metrics.Set
}

// Jobs are the jobs of one election, in one process. It starts nothing: pass Lead to the election.
type Jobs struct {
	store    driver.Store
	election string
	cfg      Config
	jobs     []*job
	busy     chan struct{} // holds one value while Lead runs
}

// New returns the jobs of an election. Their states are in the store under the name of the
// election, "/jobs/" and the name of the job. It does not call the store. It returns an error that
// names the job and the setting at fault.
func New(store driver.Store, election string, cfg Config, jobs ...Job) (*Jobs, error) {
	switch {
	case store == nil:
		return nil, errors.New("schedule: the store is nil")
	case cfg.ClockOffset < 0 || cfg.ClockOffset > 10*time.Minute:
		return nil, fmt.Errorf("schedule: ClockOffset %v is not from 0 to 10 min", cfg.ClockOffset)
	case cfg.ClockOffset == 0:
		cfg.ClockOffset = 10 * time.Second
	}
	s := &Jobs{store: store, election: election, cfg: cfg, busy: make(chan struct{}, 1)}
	names := map[string]bool{}
	for _, j := range jobs {
		own, err := s.newJob(j)
		if err != nil {
			return nil, err
		}
		if names[j.Name] {
			return nil, fmt.Errorf("schedule: two jobs are named %q", j.Name)
		}
		names[j.Name] = true
		s.jobs = append(s.jobs, own)
	}
	s.addMeters()
	return s, nil
}

// Lead runs the jobs for one term: pass it to Election.Run. It returns when the leader is asked to
// finish and all runs have ended, or when the term is over. Runs that need longer than
// Config.FinishWithin of the election are stopped by the end of the term.
func (s *Jobs) Lead(ctx context.Context, term *tenure.Term) error {
	if term.Election() != s.election {
		return fmt.Errorf("schedule: these jobs are of election %q, and the term is of %q", s.election, term.Election())
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		return errors.New("schedule: Lead already runs for these jobs")
	}
	l := newLeading(s, term)
	defer l.rest()
	l.run(ctx)
	return nil
}
