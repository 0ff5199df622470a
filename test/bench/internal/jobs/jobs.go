// Package jobs is a process that runs many scheduled jobs over one client of NATS, for the bench,
// which measures it from outside. It is a program of its own because the bench links the clients of
// all stores, which take up memory.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/schedule"
)

// Settings are the first line that the process reads. Each further line asks for a report.
type Settings struct {
	URL, Bucket string
	Lease       time.Duration
	// Specs has the schedule of each job.
	Specs []string
	// Each: each job has an election of its own, all of them in one tenure.Group. Otherwise they
	// share one.
	Each bool
}

// Report is what has happened since the last report.
type Report struct {
	// Led is the number of elections that this process leads.
	Led int
	// Late has the time from the planned instant of each tick to its start.
	Late []time.Duration
	// Reads and Writes are the calls of the store for the states of jobs, and Renewals the writes
	// of elections.
	Reads, Writes, Renewals int
	Goroutines              int
}

// work is how long the work of each tick lasts.
const work = 200 * time.Millisecond

// process counts, and leads.
type process struct {
	Settings
	driver.Store
	mu   sync.Mutex
	news Report
	led  int
}

// Run runs the process until its input ends.
func Run(in io.Reader, out io.Writer) error {
	p := &process{}
	rest, err := crew.Settings(in, &p.Settings)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nc, err := nats.Connect(p.URL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if p.Store, err = natskv.Open(ctx, js, p.Bucket); err != nil {
		return err
	}
	reporter := crew.NewReporter(out)
	orders := json.NewDecoder(rest)
	for started := false; ; started = true {
		var order string
		if err := orders.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if !started { // the bench has measured the process without jobs
			if err := p.start(ctx); err != nil {
				return err
			}
		}
		reporter.Send(p.report())
	}
}

// report returns the news, and begins again.
func (p *process) report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.news
	p.news = Report{}
	r.Led, r.Goroutines = p.led, runtime.NumGoroutine()
	return r
}

func (p *process) start(ctx context.Context) error {
	g, err := tenure.NewGroup(p, tenure.Config{Lease: p.Lease})
	if err != nil {
		return err
	}
	if !p.Each {
		var all []schedule.Job
		for i := range p.Specs {
			all = append(all, p.job(i))
		}
		return p.join(ctx, g, "jobs", all...)
	}
	for i := range p.Specs {
		if err := p.join(ctx, g, fmt.Sprint("jobs-", i), p.job(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) job(n int) schedule.Job {
	return schedule.Every(p.Specs[n]).Named(fmt.Sprint("job-", n)).Do(func(_ context.Context, t schedule.Tick) error {
		late := clock.System{}.Now().Wall.Sub(t.Planned)
		p.count(func(r *Report) { r.Late = append(r.Late, late) })
		time.Sleep(work)
		return nil
	})
}

func (p *process) join(ctx context.Context, g *tenure.Group, election string, all ...schedule.Job) error {
	s, err := schedule.New(p, election, schedule.Config{ClockOffset: time.Second}, all...)
	if err != nil {
		return err
	}
	e, err := g.Election(election)
	if err != nil {
		return err
	}
	_, err = g.Join(ctx, e, tenure.Lead(func(ctx context.Context, term *tenure.Term) error {
		p.count(func(*Report) { p.led++ })
		defer p.count(func(*Report) { p.led-- })
		return s.Lead(ctx, term)
	}))
	return err
}

func (p *process) count(change func(*Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.news)
}

// Abilities returns those of the store.
func (p *process) Abilities() driver.Abilities { return driver.AbilitiesOf(p.Store) }

// Read counts the reads of states.
func (p *process) Read(ctx context.Context, key string) (driver.Entry, error) {
	if strings.Contains(key, "/jobs/") {
		p.count(func(r *Report) { r.Reads++ })
	}
	return p.Store.Read(ctx, key)
}

// CompareAndSwap counts the writes.
func (p *process) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	p.count(func(r *Report) {
		if strings.Contains(key, "/jobs/") {
			r.Writes++
		} else {
			r.Renewals++
		}
	})
	return p.Store.CompareAndSwap(ctx, key, prev, value)
}
