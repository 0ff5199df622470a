package records

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/race"
)

// IsJob reports whether a value is the state of a scheduled job, which package schedule keeps
// beside the record of its election.
func IsJob(value []byte) bool {
	var state struct{ Format string }
	return json.Unmarshal(value, &state) == nil && strings.HasPrefix(state.Format, "tenure-ticks/")
}

// Jobs remembers which keys hold no election but the state of a scheduled job, or the probe of
// `tenure doctor`. The zero value is ready.
type Jobs struct {
	mu    sync.Mutex
	known map[string]bool
}

// maxReads is how many keys are read at once.
const maxReads = 16

// LeaveOut returns the keys without those of scheduled jobs and of probes. It reads each key that
// has "/jobs/" in it, or begins like that of a probe, until that is known to be one. A key that
// cannot be read stays.
func (j *Jobs) LeaveOut(ctx context.Context, store driver.Store, keys []string) []string {
	var reads sync.WaitGroup
	slots := make(chan struct{}, maxReads)
	for _, key := range keys {
		if !strings.Contains(key, "/jobs/") && !strings.HasPrefix(key, race.Prefix) || j.knows(key) {
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			if e, err := store.Read(ctx, key); err == nil && (IsJob(e.Value) || race.IsProbe(e.Value)) {
				j.note(key)
			}
		})
	}
	reads.Wait()
	return slices.DeleteFunc(slices.Clone(keys), j.knows)
}

func (j *Jobs) knows(key string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[key]
}

func (j *Jobs) note(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known == nil {
		j.known = map[string]bool{}
	}
	j.known[key] = true
}
