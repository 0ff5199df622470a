package metrics_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/metrics"
)

// Adapters need this: Gather yields the samples of one metric one after another, in the order of
// Definitions, with the labels in the order of their names.
func TestGatherFollowsTheDefinitions(t *testing.T) {
	set := metrics.New()
	for _, name := range []string{"b", "a"} {
		set.Add(name, func() (metrics.State, bool) { return metrics.State{}, true })
		set.AddJob(name, "report")
	}
	left := metrics.Definitions()
	var last metrics.Sample
	set.Gather(func(s metrics.Sample) {
		for len(left) > 0 && left[0] != s.Definition {
			left = left[1:]
		}
		if len(left) == 0 {
			t.Fatalf("%s comes late", s.Name)
		}
		if s.Definition == last.Definition && s.Election < last.Election {
			t.Errorf("%s of %s comes after that of %s", s.Name, s.Election, last.Election)
		}
		if s.JobKey != "" && (s.Key > s.JobKey || s.Label != "" && s.JobKey > s.Label) ||
			s.Key != "" && s.Label != "" && s.Key > s.Label || s.Label2 != "" && s.Label > s.Label2 {
			t.Errorf("%s has labels out of order", s.Name)
		}
		if (s.Value != "") != (s.Label != "") || (s.Value2 != "") != (s.Label2 != "") || (s.Election != "") != (s.Key != "") ||
			(s.Job != "") != (s.JobKey != "") {
			t.Errorf("%s has a value without a label, or a label without a value: %+v", s.Name, s)
		}
		last = s
	})
	if len(left) != 1 {
		t.Errorf("%d metrics have no sample", len(left)-1)
	}
}

func TestRemovedMembers(t *testing.T) {
	set := metrics.New()
	state := func() (metrics.State, bool) { return metrics.State{}, true }
	first, second := set.Add("a", state), set.Add("a", state)
	first.Ended(metrics.Expired)
	count := func() (n int, ended float64) {
		set.Gather(func(s metrics.Sample) {
			if s.Name == "tenure_terms_ended_total" {
				n++
				ended += s.Number
			}
		})
		return n, ended
	}
	set.Remove(first)
	set.Remove(first)
	if n, ended := count(); n != 5 || ended != 1 {
		t.Errorf("with one of two left: %d series, %v ended", n, ended)
	}
	set.Remove(second)
	if n, _ := count(); n != 0 {
		t.Errorf("with none left: %d series", n)
	}
	set.Add("a", state)
	if n, ended := count(); n != 5 || ended != 0 {
		t.Errorf("with a new one: %d series, %v ended", n, ended)
	}
}

// A recreated election counts from 0, so its samples start later.
func TestSamplesHaveAStartTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, began := metrics.New(), time.Now()
		state := func() (metrics.State, bool) { return metrics.State{}, true }
		for range 2 {
			time.Sleep(time.Hour)
			added := time.Now()
			m := set.Add("a", state)
			set.Gather(func(s metrics.Sample) {
				want := added
				if s.Scope == metrics.Process {
					want = began
				}
				if !s.Since.Equal(want) {
					t.Errorf("%s counts since %v, want %v", s.Name, s.Since, want)
				}
			})
			set.Remove(m)
		}
	})
}

// The page names each metric, and each value of its labels.
func TestPageOfTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	set := metrics.New()
	set.Add("job", func() (metrics.State, bool) { return metrics.State{}, true })
	set.AddJob("job", "")
	set.Gather(func(s metrics.Sample) {
		for _, word := range []string{s.Name, s.Key, s.JobKey, s.Label, s.Label2, s.Value, s.Value2} {
			if word != "" && !strings.Contains(string(page), "`"+word+"`") {
				t.Errorf("docs/observe.md has no `%s`", word)
			}
		}
	})
}

// Jobs of one name count together, the latest times count, and the series leave with the last job.
// A summary has sums only, without names.
func TestJobs(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	number := func(set *metrics.Set, name, value string) (n float64, found int) {
		set.Gather(func(s metrics.Sample) {
			if s.Name == name && s.Value == value {
				n, found = s.Number, found+1
			}
		})
		return n, found
	}
	for _, test := range []struct {
		set      *metrics.Set
		series   int // of two jobs
		detailed int
		left     int
	}{{metrics.New(), 2, 2, 0}, {metrics.NewSummary(), 1, 0, 1}} {
		set := test.set
		first, second, other := set.AddJob("nightly", "report"), set.AddJob("nightly", "report"), set.AddJob("nightly", "backup")
		first.Ran(metrics.RunFailed)
		second.Ran(metrics.RunFailed)
		first.Know(metrics.JobFacts{Success: at, Took: time.Second})
		second.Know(metrics.JobFacts{Success: at.Add(-time.Hour)})
		if n, found := number(set, "tenure_job_runs_total", "failed"); found != test.series || test.series == 1 && n != 2 {
			t.Errorf("%v failed in %d series", n, found)
		}
		if n, found := number(set, "tenure_job_last_success_timestamp_seconds", ""); found != test.detailed || found > 0 && n != 1_800_000_000 {
			t.Errorf("the last success is %v in %d series", n, found)
		}
		for _, j := range []*metrics.Job{first, first, second, other} {
			set.RemoveJob(j)
		}
		if _, found := number(set, "tenure_job_running", ""); found != test.left {
			t.Errorf("%d series are left", found)
		}
	}
}
