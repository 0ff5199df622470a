package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// stateOf is the state of a job whose tick was planned at an instant, and whose next one follows.
func stateOf(planned, next time.Time, state string) []byte {
	const at = time.RFC3339
	return fmt.Appendf(nil, `{"format":"tenure-ticks/1","at":%q,"id":"node-1","token":7,"plan":"0 * * * * UTC","next":%q,
		"success":{"ended":%[1]q,"since":%[3]q},"ticks":[{"planned":%[3]q,"state":%[4]q,"id":"node-1","token":7,"attempt":1,
		"began":%[3]q}],"missed":{"late":2,"last":%[3]q}}`, time.Now().UTC().Format(at), next.UTC().Format(at), planned.UTC().Format(at), state)
}

// showJobs shows the election nightly and jobs with this state, whose keys are given.
func (s *scene) showJobs(state []byte, keys ...string) {
	s.Helper()
	for _, key := range keys {
		s.store.Put(key, state)
	}
	s.lead(s.store, "nightly", "node-1")
	s.way.lists(append([]string{"nightly"}, keys...)...)
	s.show(s.way, elections())
	time.Sleep(time.Minute)
}

// countReads counts the reads of jobs.
func (s *scene) countReads() *atomic.Int32 {
	var n atomic.Int32
	s.fails(func(_ context.Context, op, key string) error {
		if op == "read" && strings.Contains(key, "/jobs/") {
			n.Add(1)
		}
		return nil
	})
	return &n
}

// ask requests the page of an election for a time, as an open page does. It returns the last
// answer.
func (s *scene) ask(election string, long time.Duration) (a detail) {
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(30 * time.Second) {
		s.about(election)
	}
	return s.about(election)
}

func TestJobs(t *testing.T) {
	scenes{
		// Without a page, a job costs one read in all. With a page, it is read each minute, or each
		// ten seconds during a run. The jobs of other elections are not read.
		"a job is read while a page shows it": func(s *scene) {
			reads := s.countReads()
			now := time.Now()
			s.showJobs(stateOf(now, now.Add(time.Hour), "finished"), "nightly/jobs/report", "other/jobs/report")
			time.Sleep(10 * time.Minute)
			if n := reads.Swap(0); n != 2 {
				s.Errorf("%d reads without a page", n)
			}
			if a := s.about("nightly"); len(a.Jobs) != 1 || a.Jobs[0].Name != "report" || a.Jobs[0].State != nil {
				s.Errorf("at first: %+v", a.Jobs)
			}
			a := s.ask("nightly", 10*time.Minute)
			if n := reads.Swap(0); n < 8 || n > 12 {
				s.Errorf("%d reads in ten quiet minutes", n)
			}
			if st := a.Jobs[0].State; st == nil || len(st.Ticks) != 1 || st.Missed.Late != 2 || st.Success.Ended.IsZero() || !st.Next.Equal(now.Add(time.Hour)) {
				s.Fatalf("the job is %+v", a.Jobs[0])
			}
			time.Sleep(2 * jobsWanted) // the page is closed
			reads.Store(0)
			s.store.Put("nightly/jobs/report", stateOf(now, now.Add(2*time.Hour), "started"))
			time.Sleep(10 * time.Minute)
			if n := reads.Swap(0); n != 0 {
				s.Errorf("%d reads after the page was closed", n)
			}
			a = s.ask("nightly", 10*time.Minute)
			if n := reads.Load(); n < 50 || n > 70 || a.Jobs[0].State.Ticks[0].State != "started" {
				s.Errorf("%d reads in ten minutes of a run: %+v", n, a.Jobs[0])
			}
		},
		"its changes reach the stream of the page": func(s *scene) {
			now := time.Now()
			s.showJobs(stateOf(now, now, "started"), "nightly/jobs/report")
			s.ask("nightly", time.Minute)
			r, end := s.stream("source=store&name=nightly", "")
			defer end()
			s.store.Put("nightly/jobs/report", stateOf(now, now.Add(time.Hour), "finished"))
			time.Sleep(2 * busyJobEvery)
			if !strings.Contains(r.text(), "event: change") {
				s.Errorf("the stream has %q", r.text())
			}
		},
		"what is wrong with a job": func(s *scene) {
			now := time.Now()
			s.showJobs(stateOf(now, now.Add(time.Hour), "finished"), "nightly/jobs/a", "nightly/jobs/b", "nightly/jobs/c")
			s.ask("nightly", time.Minute)
			s.fails(func(_ context.Context, op, key string) error {
				if op == "read" && key == "nightly/jobs/a" {
					return fmt.Errorf("call: %w", driver.ErrDenied)
				}
				if op == "list" {
					return errors.New("no list")
				}
				return nil
			})
			s.store.Put("nightly/jobs/b", []byte(`{"format":"tenure-ticks/1","at":1}`))
			s.store.Delete("nightly/jobs/c")
			a := s.ask("nightly", 2*time.Minute)
			for i, want := range []string{"refuses access", "the key holds bytes", "has no state"} {
				if j := a.Jobs[i]; !strings.Contains(j.Problem, want) || (j.State == nil) != (i > 0) {
					s.Errorf("%s: %q, and the state is %v", j.Name, j.Problem, j.State)
				}
			}
		},
		"the number of jobs on a page is bounded": func(s *scene) {
			reads := s.countReads()
			now := time.Now()
			keys := shards(maxJobs + 50)
			for i := range keys {
				keys[i] = "nightly/jobs/" + keys[i]
			}
			s.showJobs(stateOf(now, now.Add(time.Hour), "finished"), keys...)
			reads.Store(0)
			s.about("nightly")
			time.Sleep(time.Second)
			if a := s.about("nightly"); len(a.Jobs) != maxJobs || a.MoreJobs != 50 || reads.Load() != maxJobs || a.Jobs[maxJobs-1].State == nil {
				s.Errorf("%d jobs and %d more, %d reads", len(a.Jobs), a.MoreJobs, reads.Load())
			}
		},
	}.play(t)
}
