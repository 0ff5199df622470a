package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics"
	"github.com/tenure-go/tenure/schedule"
)

// samples returns the metrics of jobs that are not 0, by name and label.
func samples(set *metrics.Set) map[string]float64 {
	found := map[string]float64{}
	set.Gather(func(s metrics.Sample) {
		if s.JobKey == "" || s.Number == 0 {
			return
		}
		name := s.Name
		if s.Value != "" {
			name = fmt.Sprintf("%s %s", name, s.Value)
		}
		found[name] = s.Number
	})
	return found
}

func (w *witness) metered() schedule.Config {
	cfg := w.config()
	cfg.Metrics = metrics.New()
	return cfg
}

func (w *witness) shows(set *metrics.Set, when string, want map[string]float64) {
	w.Helper()
	if got := samples(set); !maps.Equal(got, want) {
		w.Errorf("%s: got %v\nwant %v", when, got, want)
	}
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// TestMetrics: a new leader knows from the store what the one before it knew, and counts the run
// that was lost. A former leader keeps the times, which stay true.
func TestMetrics(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		first, second := w.metered(), w.metered()
		job := schedule.Every("0 * * * *").Named("report").Do(w.work(10 * time.Minute))
		stop := w.joinAs(first, store, job)
		hour := time.Now().Truncate(time.Hour).Add(time.Hour)
		time.Sleep(time.Until(hour.Add(15 * time.Minute)))
		want := map[string]float64{
			"tenure_job_runs_total finished":            1,
			"tenure_job_warnings_total history":         1, // a new job
			"tenure_job_last_success_timestamp_seconds": unix(hour.Add(10 * time.Minute)),
			"tenure_job_last_duration_seconds":          600,
			"tenure_job_due_timestamp_seconds 1":        unix(hour.Add(time.Hour)),
			"tenure_job_due_timestamp_seconds 2":        unix(hour.Add(2 * time.Hour)),
			"tenure_job_due_timestamp_seconds 3":        unix(hour.Add(3 * time.Hour)),
		}
		w.shows(first.Metrics, "after a success", want)

		time.Sleep(time.Until(hour.Add(65 * time.Minute)))
		want["tenure_job_running"] = 1
		w.shows(first.Metrics, "during a run", want)
		stop() // the run is lost, and the next leader finds that

		delete(want, "tenure_job_running")
		delete(want, "tenure_job_last_duration_seconds")
		w.shows(first.Metrics, "in a former leader", want)

		stop = w.joinAs(second, store, job)
		defer stop()
		time.Sleep(5 * time.Minute)
		delete(want, "tenure_job_runs_total finished")
		delete(want, "tenure_job_warnings_total history")
		st, err := schedule.Read(w.Context(), store, "nightly", "report")
		if err != nil || st.LastSuccess.IsZero() || !st.Next.Equal(hour.Add(2*time.Hour)) {
			w.Fatalf("the status is %+v, %v", st, err)
		}
		want["tenure_job_last_duration_seconds"] = 600
		want["tenure_job_runs_total lost"] = 1
		want["tenure_job_last_failure_timestamp_seconds lost"] = unix(st.Ticks[1].Ended)
		w.shows(second.Metrics, "in the next leader", want)
	})
}

// TestMetricsOfBadRuns: failures, lost runs and ticks that overlap a run.
func TestMetricsOfBadRuns(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		cfg := w.metered()
		hour := time.Now().Truncate(time.Hour).Add(time.Hour)
		fails := func(context.Context, schedule.Tick) error { return errors.New("no") }
		stop := w.joinAs(cfg, store, schedule.Every("0 * * * *").Named("job").Do(fails))
		time.Sleep(time.Until(hour.Add(time.Minute)))
		stop()
		stop = w.joinAs(cfg, store, schedule.Every("*/10 * * * *").Named("job").Do(w.work(15*time.Minute)))
		defer stop()
		time.Sleep(time.Until(hour.Add(31 * time.Minute)))
		got := samples(cfg.Metrics)
		for name, want := range map[string]float64{
			"tenure_job_runs_total failed":                     1,
			"tenure_job_runs_total finished":                   1,
			"tenure_job_missed_ticks_total overlap":            1,
			"tenure_job_running":                               1,
			"tenure_job_last_failure_timestamp_seconds failed": unix(hour),
			"tenure_job_due_timestamp_seconds 1":               unix(hour.Add(20 * time.Minute)),
		} {
			if got[name] != want {
				w.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
	})
}

// TestLastSuccessOutlivesItsTick: the next leader knows the last success, although the state keeps
// only later failures.
func TestLastSuccessOutlivesItsTick(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		first, second := w.metered(), w.metered()
		minute, runs := time.Now().Truncate(time.Minute).Add(time.Minute), 0
		job := schedule.Every("* * * * *").Named("job").Do(func(context.Context, schedule.Tick) error {
			if runs++; runs > 1 {
				return errors.New("no")
			}
			return nil
		})
		stop := w.joinAs(first, store, job)
		time.Sleep(time.Until(minute.Add(30*time.Minute + time.Second)))
		stop()
		defer w.joinAs(second, store, job)()
		time.Sleep(30 * time.Second)
		st, err := schedule.Read(w.Context(), store, "nightly", "job")
		if err != nil || st.Ticks[0].State != "failed" || st.LastSuccess.IsZero() {
			w.Fatalf("the state is %+v, %v", st, err)
		}
		const name = "tenure_job_last_success_timestamp_seconds"
		if a, b := samples(first.Metrics)[name], samples(second.Metrics)[name]; a != unix(st.LastSuccess) || a != b {
			w.Errorf("the last success is %v, and %v in the next leader", a, b)
		}
		if n := samples(second.Metrics)["tenure_job_due_timestamp_seconds 3"]; n != unix(st.LastSuccess.Add(3*time.Minute)) {
			w.Errorf("the third tick was due at %v", n)
		}
	})
}
