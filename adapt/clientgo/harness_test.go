package clientgo

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

const name = "operator"

// TestMain silences client-go, which logs each failed attempt.
func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// lab is one election in virtual time, with all that its operators do.
type lab struct {
	*testing.T
	store *memory.Store

	mu    sync.Mutex
	work  []*work
	count int // of operators
}

// work is one period of work, from OnStartedLeading until the work has stopped.
type work struct {
	by         string
	begun      time.Time
	told, done time.Time // when its context ended, and when it stopped
}

func play(t *testing.T, scene func(*lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, store: memory.New()}
		scene(l)
		time.Sleep(time.Minute) // calls of the store that no election waits for
		if over, why := l.overlap(); over > 0 {
			t.Errorf("two lead at once for %v: %s", over, why)
		}
	})
}

// overlap returns the longest time for which two worked at once.
func (l *lab) overlap() (longest time.Duration, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range l.work {
		for _, b := range l.work[i+1:] {
			end := a.done
			if end.IsZero() {
				end = time.Now()
			}
			if over := end.Sub(b.begun); over > longest {
				longest, why = over, fmt.Sprintf("%s until %v, %s from %v", a.by, end, b.by, b.begun)
			}
		}
	}
	return longest, why
}

// operator is a process with an elector.
type operator struct {
	*lab
	id      string
	line    faults.Store
	clock   *jumper
	lock    *Lock
	stopFor time.Duration // how long its work takes to stop
	end     context.CancelFunc
	result  chan error
}

// strict makes an operator in the strict mode. The change may be nil.
func (l *lab) strict(id string, change func(*Config)) *operator {
	l.Helper()
	l.count++
	o := &operator{lab: l, id: id, line: faults.New(l.store, uint64(l.count), faults.Plan{}), clock: &jumper{Clock: clock.Standard{}}, result: make(chan error, 1)}
	cfg := Config{Election: tenure.Config{ID: id, Clock: o.clock}}
	if change != nil {
		change(&cfg)
	}
	lock, err := New(o.line, name, cfg)
	if err != nil {
		l.Fatal(err)
	}
	o.lock, o.stopFor = lock, lock.Times().StopWork
	return o
}

// run starts the operator, which works whenever it leads.
func (o *operator) run() *operator {
	ctx, end := context.WithCancel(o.Context())
	o.end = end
	go func() { o.result <- o.lock.Elect(ctx, o.elector(nil, o.lock.Times(), o.lead)) }()
	return o
}

// runDeaf is run with an elector that learns of the end of a term by Update alone.
func (o *operator) runDeaf() *operator {
	ctx, end := context.WithCancel(o.Context())
	o.end = end
	go func() {
		o.result <- o.lock.Run(ctx, func(context.Context) error {
			stopped := make(chan struct{})
			le, err := leaderelection.NewLeaderElector(o.elector(o.lock, o.lock.Times(), func(ctx context.Context) {
				defer close(stopped)
				o.lead(ctx)
			}))
			if err != nil {
				return err
			}
			le.Run(ctx) // it leads before it ends
			<-stopped
			return nil
		})
	}()
	return o
}

func (l *lab) elector(lock resourcelock.Interface, times Times, lead func(context.Context)) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: times.LeaseDuration, RenewDeadline: times.RenewDeadline, RetryPeriod: times.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: func() {}},
	}
}

func (o *operator) lead(ctx context.Context) { o.works(ctx, o.id, o.stopFor) }

// works is work that takes a while to stop.
func (l *lab) works(ctx context.Context, by string, stopFor time.Duration) {
	w := &work{by: by, begun: time.Now()}
	l.mu.Lock()
	l.work = append(l.work, w)
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	w.told = time.Now()
	l.mu.Unlock()
	time.Sleep(stopFor)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.done = time.Now()
}

// last returns the last work, which is the zero work if there was none.
func (l *lab) last() work {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.work) == 0 {
		return work{}
	}
	return *l.work[len(l.work)-1]
}

// leads waits until an operator works. The limit is in virtual time.
func (l *lab) leads(id string, within time.Duration) work {
	l.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		if w := l.last(); w.by == id && w.told.IsZero() {
			return w
		}
		if time.Now().After(end) {
			l.Fatalf("%s does not lead within %v; the last is %+v", id, within, l.last())
		}
	}
}

// ended waits for the end of an operator, and returns the result of its lock.
func (o *operator) ended() error {
	o.Helper()
	select {
	case err := <-o.result:
		return err
	case <-time.After(time.Hour): // in virtual time
		o.Fatalf("%s does not end", o.id)
		return nil
	}
}

// ends ends an operator and returns the result of its lock.
func (o *operator) ends() error {
	o.end()
	return o.ended()
}

// jumper is a clock of a process that may be frozen: its time goes on while the process does not.
type jumper struct {
	clock.Clock
	mu    sync.Mutex
	ahead time.Duration
}

func (j *jumper) Now() clock.Reading {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.Clock.Now()
	r.Mono, r.Raw, r.Boot = r.Mono+j.ahead, r.Raw+j.ahead, r.Boot+j.ahead
	return r
}

func (j *jumper) jump(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ahead += d
}

// released reports whether the record in the store is released.
func (l *lab) released() bool {
	l.Helper()
	e, err := l.store.Read(l.Context(), name)
	if err != nil {
		l.Fatal(err)
	}
	var record struct{ Released bool }
	if err := json.Unmarshal(e.Value, &record); err != nil {
		l.Fatal(err)
	}
	return record.Released
}
