package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/schedule"
)

// hourly is an invocation of an hourly line, as each machine has it.
var hourly = schedule.Invocation{Job: "job", Period: time.Hour}

// invocation is a process that a crontab has started.
type invocation struct {
	once *schedule.Once
	done chan struct{} // closed when it has ended
	out  schedule.Outcome
}

// invoke starts a process, which leads until its tick is decided or ctx ends.
func (w *witness) invoke(ctx context.Context, store driver.Store, i schedule.Invocation, takes time.Duration) *invocation {
	w.Helper()
	o, err := schedule.NewOnce(store, "hourly", w.config(), i)
	if err != nil {
		w.Fatal(err)
	}
	e, err := tenure.New(store, "hourly", tenure.Config{})
	if err != nil {
		w.Fatal(err)
	}
	p := &invocation{once: o, done: make(chan struct{})}
	work := w.work(takes)
	go func() {
		defer close(p.done)
		if err := e.Run(ctx, func(ctx context.Context, term *tenure.Term) (err error) {
			if p.out, err = o.Lead(ctx, term, work); err == nil && !p.out.Decided && !p.out.Ran {
				return tenure.ErrDecline
			}
			return err
		}); err != nil {
			w.Error(err)
		}
	}()
	return p
}

// tick starts a process on each store at the present time, with clocks that are off by these
// offsets, and returns their outcomes.
func (w *witness) tick(i schedule.Invocation, takes time.Duration, stores []driver.Store, offsets ...time.Duration) (all []schedule.Outcome) {
	w.Helper()
	var processes []*invocation
	for n, offset := range offsets {
		i.Start = time.Now().Add(offset)
		processes = append(processes, w.invoke(w.Context(), stores[n%len(stores)], i, takes))
	}
	for _, p := range processes {
		<-p.done
		all = append(all, p.out)
	}
	return all
}

// used returns a store in which the job has a state, and the time of its next tick has come.
func (w *witness) used() *memory.Store {
	w.Helper()
	store := memory.New()
	out := w.tick(hourly, 0, []driver.Store{store}, 0)[0]
	if !out.Decided || out.Ran || !strings.Contains(out.Reason, "the job is new, or its state was deleted") {
		w.Fatalf("the first use: %+v", out)
	}
	time.Sleep(time.Hour)
	return store
}

func TestOnceOfSeveral(t *testing.T) {
	play(t, func(w *witness) {
		stores := []driver.Store{w.used()}
		for hour := range 20 {
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
			for _, out := range w.tick(hourly, time.Minute, stores, 0, 9*time.Second, -9*time.Second) {
				if !out.Decided || out.Tick.State != "finished" || out.Tick.ID == "" || out.Reason != "" {
					w.Errorf("the outcome is %+v", out)
				}
			}
			time.Sleep(10 * time.Minute) // a late machine
			out := w.tick(hourly, time.Minute, stores, 0)[0]
			if out.Ran || out.Tick.State != "finished" || len(w.ran("job")) != hour+1 {
				w.Errorf("it ran %d times; the last outcome is %+v", len(w.ran("job")), out)
			}
		}
	})
}

// TestOnceFaults: three machines over a store that loses, delays and repeats requests. No tick runs
// twice, and most run. Processes are cut off, and come late.
func TestOnceFaults(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			play(t, func(w *witness) {
				inner := w.used()
				const hours = 40
				for hour := range uint64(hours) {
					time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
					var stores []driver.Store
					for n := range uint64(3) {
						stores = append(stores, faults.New(inner, seed*1000+hour*10+n, faults.Plan{MaxDelay: 3 * time.Second, Chances: faults.Chances{
							faults.LoseRequest: 0.02, faults.LoseAnswer: 0.03, faults.LandLate: 0.02, faults.Replay: 0.02, faults.Stale: 0.05,
						}}))
					}
					cut := stores[hour%3].(faults.Store)
					defer time.AfterFunc(time.Duration(hour)*time.Second, cut.Partition).Stop()
					defer time.AfterFunc(20*time.Minute, cut.Heal).Stop()
					before := len(w.ran("job"))
					outs := w.tick(hourly, 10*time.Second, stores, 3*time.Second, -5*time.Second, 8*time.Second)
					if runs := len(w.ran("job")) - before; runs > 1 {
						w.Errorf("hour %d: %d runs: %+v", hour, runs, outs)
					}
				}
				if n := len(w.ran("job")); n < hours*9/10 {
					w.Errorf("only %d of %d ticks ran: %v", n, hours, w.kinds())
				}
			})
		})
	}
}

// TestOnceLost: the process that runs the tick is cut off. Another one waits for its lease.
func TestOnceLost(t *testing.T) {
	for _, again := range []bool{false, true} {
		play(t, func(w *witness) {
			inner := w.used()
			i := hourly
			i.AtLeastOnce = again
			first := faults.New(inner, 1, faults.Plan{})
			ctx, cancel := context.WithCancel(w.Context())
			p := w.invoke(ctx, first, i, 5*time.Minute)
			time.Sleep(time.Minute)
			q := w.invoke(w.Context(), inner, i, 5*time.Minute)
			time.Sleep(time.Second)
			if out, err := q.once.Read(w.Context()); err != nil || out.Decided || out.Tick.State != "started" || out.Other.State != "" {
				w.Errorf("during the run: %+v, %v", out, err)
			}
			first.Partition()
			<-q.done
			want := map[bool]string{false: "lost", true: "finished"}[again]
			if q.out.Ran != again || q.out.Tick.State != want || len(w.ran("job")) != map[bool]int{false: 1, true: 2}[again] {
				w.Errorf("at least once %t: %+v", again, q.out)
			}
			if out, err := q.once.Read(w.Context()); err != nil || !out.Decided || out.Tick.State != want {
				w.Errorf("after the run: %+v, %v", out, err)
			}
			first.Heal()
			cancel()
			if <-p.done; !p.out.Ran || p.out.Decided {
				w.Errorf("the first process: %+v", p.out)
			}
		})
	}
}

// TestOnceAsked: a process that is asked to leave finishes its run, which is recorded.
func TestOnceAsked(t *testing.T) {
	play(t, func(w *witness) {
		store := w.used()
		ctx, cancel := context.WithCancel(w.Context())
		p := w.invoke(ctx, store, hourly, 7*time.Second)
		time.Sleep(2 * time.Second)
		q := w.invoke(w.Context(), store, hourly, 0)
		cancel()
		if <-p.done; !p.out.Ran || !p.out.Decided || p.out.Tick.State != "finished" {
			w.Errorf("the outcome is %+v", p.out)
		}
		if <-q.done; q.out.Ran || q.out.Tick.State != "finished" {
			w.Errorf("the outcome of the other is %+v", q.out)
		}
	})
}

// TestOnceOverlap: a tick whose time comes during the run of an earlier one waits for its end, or
// the process gives up.
func TestOnceOverlap(t *testing.T) {
	play(t, func(w *witness) {
		store := w.used()
		p := w.invoke(w.Context(), store, hourly, 70*time.Minute)
		time.Sleep(time.Hour)
		q := w.invoke(w.Context(), store, hourly, time.Minute)
		time.Sleep(time.Minute)
		if out, err := q.once.Read(w.Context()); err != nil || out.Decided || out.Tick.State != "" || out.Other.State != "started" {
			w.Errorf("during the other run: %+v, %v", out, err)
		}
		<-p.done
		if <-q.done; !q.out.Ran || q.out.Tick.State != "finished" || len(w.ran("job")) != 2 {
			w.Errorf("the outcome is %+v", q.out)
		}
	})
}

func TestOnceByName(t *testing.T) {
	play(t, func(w *witness) {
		stores := []driver.Store{w.used()}
		for n, name := range []string{"2026-11-28T03", "2026-11-28T04", "2026-11-28T03"} {
			i := schedule.Invocation{Job: "job", Tick: name}
			for _, out := range w.tick(i, time.Minute, stores, 0, time.Second) {
				if out.Tick.Name != name || out.Tick.State != "finished" {
					w.Errorf("%d: the outcome is %+v", n, out)
				}
			}
		}
		if n := len(w.ran("job")); n != 2 {
			w.Errorf("it ran %d times", n)
		}
	})
}

// TestOnceDeletedState: the state is deleted after a run. A late machine does not run it again,
// unless the tick may run twice.
func TestOnceDeletedState(t *testing.T) {
	for _, again := range []bool{false, true} {
		play(t, func(w *witness) {
			store := w.used()
			i := hourly
			i.AtLeastOnce = again
			w.tick(i, time.Minute, []driver.Store{store}, 0)
			store.Delete("hourly/jobs/job")
			out := w.tick(i, time.Minute, []driver.Store{store}, 0)[0]
			if out.Ran != again || !again && !strings.Contains(out.Reason, "deleted") {
				w.Errorf("at least once %t: the outcome is %+v", again, out)
			}
		})
	}
}

func TestOnceErrors(t *testing.T) {
	for reason, i := range map[string]schedule.Invocation{
		"no identity":     {Job: "job"},
		"two identities":  {Job: "job", Tick: "a", Period: time.Hour},
		"a long name":     {Job: "job", Tick: strings.Repeat("ä", 65)},
		"no text":         {Job: "job", Tick: "\xff"},
		"a bad period":    {Job: "job", Period: -time.Hour},
		"a bad job":       {Job: "a/b", Tick: "a"},
		"a bad window":    {Job: "job", Tick: "a", Window: -1},
		"too little time": {Job: "job", Tick: "a", Needs: -1},
	} {
		if _, err := schedule.NewOnce(memory.New(), "hourly", schedule.Config{}, i); err == nil {
			t.Errorf("%s is no error", reason)
		}
	}
	if _, err := schedule.NewOnce(memory.New(), "hourly", schedule.Config{}, schedule.Invocation{Job: "job", Tick: strings.Repeat("ä", 64)}); err != nil {
		t.Error(err)
	}
	if _, err := schedule.NewOnce(nil, "hourly", schedule.Config{}, hourly); err == nil {
		t.Error("no store is no error")
	}
	store := memory.New()
	store.Put("hourly/jobs/job", []byte("bytes of another program"))
	o, err := schedule.NewOnce(store, "hourly", schedule.Config{}, hourly)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Read(t.Context()); err == nil || errors.Is(err, schedule.ErrNoState) {
		t.Errorf("foreign bytes: %v", err)
	}
}
