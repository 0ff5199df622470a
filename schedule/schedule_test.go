package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/schedule"
)

// witness notes the first act of each run, and fails if two runs of a job overlap.
type witness struct {
	*testing.T
	mu     sync.Mutex
	acts   map[string][]time.Time // by job
	active map[string]int
	events []schedule.Event
}

func newWitness(t *testing.T) *witness {
	return &witness{T: t, acts: map[string][]time.Time{}, active: map[string]int{}}
}

// work returns work that takes some time, unless its context ends.
func (w *witness) work(takes time.Duration) func(context.Context, schedule.Tick) error {
	return func(ctx context.Context, t schedule.Tick) error {
		w.mu.Lock()
		w.acts[t.Job] = append(w.acts[t.Job], t.Planned)
		if w.active[t.Job]++; w.active[t.Job] > 1 {
			w.Errorf("two runs of %s at once", t.Job)
		}
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.active[t.Job]--
		}()
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *witness) ran(job string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acts[job]
}

// kinds returns the kinds of the events so far, each with its number.
func (w *witness) kinds() map[schedule.EventKind]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[schedule.EventKind]int{}
	for _, e := range w.events {
		n[e.Kind] += max(1, e.Count)
	}
	return n
}

func (w *witness) config() schedule.Config {
	return schedule.Config{OnEvent: func(e schedule.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}}
}

// join runs a member until the result is called, which waits for it.
func (w *witness) join(store driver.Store, jobs ...schedule.Job) (stop func()) {
	w.Helper()
	return w.joinAs(w.config(), store, jobs...)
}

func (w *witness) joinAs(cfg schedule.Config, store driver.Store, jobs ...schedule.Job) (stop func()) {
	w.Helper()
	s, err := schedule.New(store, "nightly", cfg, jobs...)
	if err != nil {
		w.Fatal(err)
	}
	e, err := tenure.New(store, "nightly", tenure.Config{})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, s.Lead) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

func play(t *testing.T, test func(w *witness)) {
	synctest.Test(t, func(t *testing.T) { test(newWitness(t)) })
}

func TestEachTickRuns(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		stop := w.join(store, schedule.Every("*/10 * * * *").Named("report").Do(w.work(time.Minute)),
			schedule.Every("0 3 * * *").Named("backup").Do(w.work(time.Hour)))
		time.Sleep(24*time.Hour - 5*time.Minute)
		stop()
		if n := len(w.ran("report")); n != 143 {
			w.Errorf("report ran %d times", n)
		}
		if n := len(w.ran("backup")); n != 1 {
			w.Errorf("backup ran %d times", n)
		}
		st, err := schedule.Read(w.Context(), store, "nightly", "report")
		if err != nil || len(st.Ticks) == 0 || st.Ticks[len(st.Ticks)-1].State != "finished" {
			w.Errorf("the status is %+v, %v", st, err)
		}
	})
}

// TestFaults: two members over a store that loses, delays and repeats requests. No tick runs twice,
// and most run. Leadership changes every hour.
func TestFaults(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			play(t, func(w *witness) {
				inner := memory.New()
				member := func(n uint64) func() {
					f := faults.New(inner, seed*10+n, faults.Plan{MaxDelay: 3 * time.Second, Chances: faults.Chances{
						faults.LoseRequest: 0.02, faults.LoseAnswer: 0.03, faults.LandLate: 0.02, faults.Replay: 0.02, faults.Stale: 0.05,
					}})
					return w.join(f, schedule.Every("*/5 * * * *").Named("job").Do(w.work(20*time.Second)))
				}
				leave := []func(){member(0), member(1)}
				for n := range uint64(12) {
					time.Sleep(time.Hour)
					leave[0]()
					leave = []func(){leave[1], member(n + 2)}
				}
				for _, stop := range leave {
					stop()
				}
				seen := map[time.Time]bool{}
				for _, planned := range w.ran("job") {
					if seen[planned] {
						w.Errorf("%v ran twice", planned)
					}
					seen[planned] = true
				}
				if n := len(seen); n < 12*12*9/10 {
					w.Errorf("only %d of %d ticks ran: %v", n, 12*12, w.kinds())
				}
			})
		})
	}
}

// TestHandOver: a run that goes on ends before the leader leaves, and its end is recorded.
func TestHandOver(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		stop := w.join(store, schedule.Every("0 * * * *").Named("job").Do(w.work(7*time.Second)))
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Second)))
		began := time.Now()
		stop()
		if took := time.Since(began); took < 5*time.Second {
			w.Errorf("it left after %v, during a run", took)
		}
		st, err := schedule.Read(w.Context(), store, "nightly", "job")
		if err != nil || len(st.Ticks) != 1 || st.Ticks[0].State != "finished" {
			w.Errorf("the status is %+v, %v", st, err)
		}
	})
}

// TestLost: a leader is cut off during a run, which ends with its term. Another leader takes over.
func TestLost(t *testing.T) {
	for _, again := range []bool{false, true} {
		play(t, func(w *witness) {
			inner := memory.New()
			first := faults.New(inner, 1, faults.Plan{})
			job := schedule.Every("0 * * * *").Named("job").Do(w.work(5 * time.Minute))
			job.AtLeastOnce = again
			stopFirst := w.join(first, job)
			time.Sleep(time.Minute)
			stopSecond := w.join(inner, job)
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
			first.Partition()
			time.Sleep(10 * time.Minute)
			if n := len(w.ran("job")); n != map[bool]int{false: 1, true: 2}[again] {
				w.Errorf("at least once %t: it ran %d times", again, n)
			}
			if n := w.kinds()[schedule.EventLost]; n == 0 {
				w.Error("nothing says that the run was lost")
			}
			first.Heal()
			stopFirst()
			stopSecond()
		})
	}
}

func TestFailures(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		slow := schedule.Every("0 * * * *").Named("slow").Do(w.work(time.Hour))
		slow.Timeout = time.Minute
		bad := schedule.Every("0 * * * *").Named("bad").Do(func(context.Context, schedule.Tick) error {
			return errors.New(strings.Repeat("no ", 100))
		})
		store.Put("nightly/jobs/foreign", []byte("bytes of another program"))
		stop := w.join(store, slow, bad, schedule.Every("* * * * *").Named("foreign").Do(w.work(0)))
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + 2*time.Minute)))
		stop()
		for _, name := range []string{"slow", "bad"} {
			st, err := schedule.Read(w.Context(), store, "nightly", name)
			if err != nil || len(st.Ticks) != 1 || st.Ticks[0].State != "failed" || st.Ticks[0].Error == "" {
				w.Errorf("the status of %s is %+v, %v", name, st, err)
			}
		}
		if len(w.ran("foreign")) > 0 || w.kinds()[schedule.EventTrouble] == 0 {
			w.Error("a job runs over foreign bytes")
		}
		if _, err := schedule.Read(w.Context(), store, "nightly", "foreign"); err == nil {
			w.Error("foreign bytes have a status")
		}
	})
}

// TestDeletedState: the key of a job is deleted. The next tick is skipped, and the one after runs.
func TestDeletedState(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		stop := w.join(store, schedule.Every("0 * * * *").Named("job").Do(w.work(0)))
		next := time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)
		time.Sleep(time.Until(next))
		store.Delete("nightly/jobs/job")
		time.Sleep(2 * time.Hour)
		stop()
		if n := len(w.ran("job")); n != 2 {
			w.Errorf("it ran %d times, not for the first and the third hour", n)
		}
	})
}

func TestManyJobs(t *testing.T) {
	play(t, func(w *witness) {
		var jobs []schedule.Job
		for n := range 1000 {
			jobs = append(jobs, schedule.Every("0 * * * *").Named(fmt.Sprint("job-", n)).Do(w.work(0)))
		}
		stop := w.join(memory.New(), jobs...)
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		stop()
		for _, j := range jobs {
			if len(w.ran(j.Name)) != 1 {
				w.Fatalf("%s ran %d times", j.Name, len(w.ran(j.Name)))
			}
		}
	})
}

func TestConfigErrors(t *testing.T) {
	work := func(context.Context, schedule.Tick) error { return nil }
	good := schedule.Every("0 3 * * *").Named("job").Do(work)
	for reason, jobs := range map[string][]schedule.Job{
		"no name":      {schedule.Every("0 3 * * *").Do(work)},
		"a bad name":   {good.Named("a/b")},
		"no work":      {schedule.Every("0 3 * * *").Named("job")},
		"no schedule":  {schedule.Every("").Named("job").Do(work)},
		"a name twice": {good, good},
		"local time":   {{Name: "job", Spec: "0 3 * * *", Zone: time.Local, Run: work}},
	} {
		if _, err := schedule.New(memory.New(), "nightly", schedule.Config{}, jobs...); err == nil {
			t.Errorf("%s is no error", reason)
		}
	}
	if _, err := schedule.New(nil, "nightly", schedule.Config{}); err == nil {
		t.Error("no store is no error")
	}
	if _, err := schedule.New(memory.New(), "nightly", schedule.Config{ClockOffset: time.Hour}); err == nil {
		t.Error("an hour is no error")
	}
}
