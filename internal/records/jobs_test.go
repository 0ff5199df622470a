package records_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/driver/race"
	"github.com/tenure-go/tenure/internal/records"
)

// TestJobsAreNoElections: a key is that of a job by its value, not by its name.
func TestJobsAreNoElections(t *testing.T) {
	store := memory.New()
	store.Put("nightly", []byte(`{"leader_id":"a"}`))
	store.Put("nightly/jobs/report", []byte(`{"format":"tenure-ticks/1","seq":3}`))
	store.Put("other/jobs/election", []byte(`{"leader_id":"a"}`))
	store.Put(race.Prefix+"a", race.NewValue())
	store.Put(race.Prefix+"election", []byte(`{"leader_id":"a"}`))
	var jobs records.Jobs
	keys := []string{"nightly", "nightly/jobs/report", "other/jobs/election", "other/jobs/none", race.Prefix + "a", race.Prefix + "election"}
	want := []string{"nightly", "other/jobs/election", "other/jobs/none", race.Prefix + "election"}
	for range 2 {
		got, rest := jobs.Split(t.Context(), store, keys)
		if !slices.Equal(got, want) || !slices.Equal(rest, keys[1:2]) {
			t.Errorf("got %v, want %v; jobs %v", got, want, rest)
		}
	}
}
