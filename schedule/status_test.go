package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/schedule"
)

// TestObserversReadTheSame: the dashboard, which does not depend on this module, reads what Read
// does.
func TestObserversReadTheSame(t *testing.T) {
	play(t, func(w *witness) {
		store := memory.New()
		n := 0
		stop := w.join(store, schedule.Every("*/10 * * * *").Named("job").Do(func(context.Context, schedule.Tick) error {
			if n++; n == 2 {
				return errors.New("no")
			}
			time.Sleep(15 * time.Minute)
			return nil
		}))
		defer stop()
		time.Sleep(58 * time.Minute)
		st, err := schedule.Read(w.Context(), store, "nightly", "job")
		if err != nil {
			w.Fatal(err)
		}
		e, err := store.Read(w.Context(), records.JobKey("nightly", "job"))
		j, ok := records.ReadJob(e.Value)
		if err != nil || !ok {
			w.Fatalf("%s, %v", e.Value, err)
		}
		if j.Plan != st.Plan || !j.Updated.Equal(st.Updated) || j.ID != st.ID || j.Token != st.Token || !j.Next.Equal(st.Next) ||
			!j.Success.Ended.Equal(st.LastSuccess) || j.Missed.Late != st.Late || j.Missed.Overlap != st.Overlap || !j.Missed.Last.Equal(st.LastMissed) {
			w.Errorf("got %+v, want %+v", j, st)
		}
		if len(j.Ticks) < 3 || len(j.Ticks) != len(st.Ticks) || st.Overlap == 0 || st.LastSuccess.IsZero() || st.Next.IsZero() {
			w.Fatalf("got %+v, want %+v", j, st)
		}
		if d := j.Day; !d.Hour.Equal(time.Now().UTC().Truncate(time.Hour)) || len(d.Finished) != 1 || d.Finished[0] != 2 || d.Failed[0] != 1 || d.Missed[0] != 2 {
			w.Errorf("the day is %+v", d)
		}
		for i, tick := range j.Ticks {
			want := st.Ticks[i]
			got := schedule.TickStatus{
				Planned: tick.Planned, State: tick.State, ID: tick.ID, Token: tick.Token, Attempt: tick.Attempt,
				Began: tick.Began, Ended: tick.Ended, Code: tick.Code, Error: tick.Error,
			}
			if got != want {
				w.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}
