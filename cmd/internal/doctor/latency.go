package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/race"
	"github.com/tenure-go/tenure/timing"
)

// The number of calls for each distribution, and the time after which no further call begins.
const (
	calls    = 100
	callsFor = 5 * time.Second
)

// pushWithin is how long a push may take; after some that took longer, pushes are not awaited.
const (
	pushWithin  = 2 * time.Second
	pushesAtOut = 3
)

// sample collects how long calls took.
type sample struct {
	took   []time.Duration
	failed int
	err    error // the last reason
}

func (s *sample) fail(err error) {
	s.failed++
	s.err = err
}

// percentile returns the shortest time that so many percent of the calls did not exceed.
func (s *sample) percentile(percent int) time.Duration {
	return s.took[(len(s.took)*percent+99)/100-1]
}

// latency returns nil if no call succeeded.
func (s *sample) latency() *Latency {
	if len(s.took) == 0 {
		return nil
	}
	slices.Sort(s.took)
	millis := func(percent int) float64 { return float64(s.percentile(percent).Microseconds()) / 1000 }
	return &Latency{Calls: len(s.took) + s.failed, Failed: s.failed, P50: millis(50), P90: millis(90), P99: millis(99), Max: millis(100)}
}

func (l *Latency) String() string {
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s ms (%d calls)", figure(l.P50), figure(l.P90), figure(l.P99), figure(l.Max), l.Calls)
}

// figure has about three digits.
func figure(millis float64) string {
	switch {
	case millis >= 100:
		return fmt.Sprintf("%.0f", millis)
	case millis >= 10:
		return fmt.Sprintf("%.1f", millis)
	}
	return fmt.Sprintf("%.2f", millis)
}

// distribution adds the row of a sample. It returns nil if no call succeeded.
func (d *Doctor) distribution(check, note string, s *sample) *Latency {
	l := s.latency()
	switch {
	case l == nil:
		d.unknown(check, s.err)
	case s.failed > 0:
		text, remedy := d.explain(s.err)
		d.measurement(check, Warning, remedy, "%v%s; %d had no success: %s", l, note, s.failed, text)
	default:
		d.measurement(check, OK, "", "%v%s", l, note)
	}
	return l
}

func (d *Doctor) measureReads(ctx context.Context) {
	s := new(sample)
	each(ctx, 0, s, func(ctx context.Context) error {
		began := time.Now()
		_, err := d.Store.Read(ctx, d.Key)
		if err == nil {
			s.took = append(s.took, time.Since(began))
		}
		return err
	})
	d.report.Reads = d.distribution("reads", "", s)
}

// each makes one call after another, and waits for the time pace before each. It gives up at an
// error that waiting does not mend.
func each(ctx context.Context, pace time.Duration, s *sample, call func(context.Context) error) {
	begin := time.Now()
	for n := 0; n < calls && (n == 0 || time.Since(begin) < callsFor); n++ {
		select {
		case <-ctx.Done():
		case <-time.After(pace):
		}
		if err := ctx.Err(); err != nil {
			s.err = err
			return
		}
		err := bounded(ctx, call)
		if err != nil {
			s.fail(err)
		}
		if errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrUnfit) {
			return
		}
	}
}

// measureWrites also measures pushes, and says how followers learn of a change.
func (d *Doctor) measureWrites(ctx context.Context) {
	s, pushed := new(sample), &pushes{arrived: map[driver.Version]time.Time{}}
	if d.able.Watcher != nil {
		pushed.listen(ctx, d)
		defer pushed.stop()
	}
	each(ctx, d.Pace, s, func(ctx context.Context) error {
		e, err := d.Store.Read(ctx, d.Key) // also after a write whose outcome is not known
		if err != nil {
			return err
		}
		sent := time.Now()
		v, err := d.Store.CompareAndSwap(ctx, d.Key, e.Version, race.NewValue())
		if err != nil {
			return err
		}
		s.took = append(s.took, time.Since(sent))
		if pushed.awaits() {
			pushed.await(ctx, v, sent)
		}
		return nil
	})
	d.report.Writes = d.distribution("writes", "", s)
	d.judgePushes(pushed)
}

func (d *Doctor) judgePushes(p *pushes) {
	cfg := d.config(d.Lease)
	read := fmt.Sprintf("each %v (PollStable)", cfg.Tuning.PollStable)
	switch {
	case d.able.Watcher == nil:
		d.row("pushes", OK, "", "this store does not push: followers read it %s, or use --peer", read)
	case d.report.Writes == nil:
		d.row("pushes", Unknown, "", "could not be checked: no write succeeded")
	case len(p.sample.took) == 0:
		text, remedy := d.explain(p.sample.err)
		d.row("pushes", Warning, remedy, "no change was pushed, so followers read %s: %s", read, text)
	default:
		d.report.Pushes = d.distribution("pushes", ", from sending the write", &p.sample)
	}
}

// pushes measures how long after a write's sending it is pushed.
type pushes struct {
	sample  sample
	stopped func()

	mu      sync.Mutex
	arrived map[driver.Version]time.Time
	lost    error
	news    chan struct{}
}

func (p *pushes) stop() {
	if p.stopped != nil {
		p.stopped()
	}
}

func (p *pushes) listen(ctx context.Context, d *Doctor) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p.news = make(chan struct{}, 1)
	stop, err := d.able.Watcher.Watch(ctx, d.Key, func(e driver.Entry) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lost = e.Lost
		if _, known := p.arrived[e.Version]; !known && e.Lost == nil {
			p.arrived[e.Version] = time.Now()
		}
		select {
		case p.news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		p.sample.err = err
		return
	}
	p.stopped = stop
}

// awaits reports whether it is worth waiting for the next push.
func (p *pushes) awaits() bool {
	return p.stopped != nil && (len(p.sample.took) > 0 || p.sample.failed < pushesAtOut)
}

var errNoPush = fmt.Errorf("no push came within %v of a write", pushWithin)

func (p *pushes) await(ctx context.Context, v driver.Version, sent time.Time) {
	late := time.NewTimer(pushWithin)
	defer late.Stop()
	for {
		p.mu.Lock()
		at, known := p.arrived[v]
		lost := p.lost
		p.mu.Unlock()
		if known {
			p.sample.took = append(p.sample.took, at.Sub(sent))
			return
		}
		select {
		case <-p.news:
		case <-ctx.Done():
			p.sample.fail(ctx.Err())
			return
		case <-late.C:
			if lost == nil {
				lost = errNoPush
			}
			p.sample.fail(lost)
			return
		}
	}
}

// judgeLease compares the intended lease with the shortest that the latency allows.
func (d *Doctor) judgeLease() {
	const check = "lease"
	r := d.report
	if r.Reads == nil || r.Writes == nil {
		d.row(check, Unknown, "", "the shortest sensible lease is not known: reads or writes failed")
		return
	}
	// Each call took at most 10 s, so there always is a lease that is long enough.
	took := time.Duration(max(r.Reads.P99, r.Writes.P99) * float64(time.Millisecond))
	least := timing.ShortestLease(tenure.Config{}, d.Store, took)
	failover := timing.WorstFailover(d.config(least), d.Store)
	r.ShortestLeaseMillis, r.FailoverMillis = least.Milliseconds(), failover.Milliseconds()
	status, remedy := OK, ""
	if d.Lease < least {
		status, remedy = Warning, fmt.Sprintf("use a lease of at least %v", least)
	}
	d.measurement(check, status, remedy, "shortest sensible %v: a failover takes up to %v; with %v up to %v",
		least, failover, d.Lease, timing.WorstFailover(d.config(d.Lease), d.Store))
}
