package records

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// IsJob reports whether a value is the state of a scheduled job, which package schedule keeps
// beside the record of its election.
func IsJob(value []byte) bool {
	var state struct{ Format string }
	return json.Unmarshal(value, &state) == nil && strings.HasPrefix(state.Format, "tenure-ticks/")
}

// Jobs remembers which keys hold the states of scheduled jobs. The zero value is ready.
type Jobs struct {
	mu    sync.Mutex
	known map[string]bool
}

// maxReads is how many keys are read at once.
const maxReads = 16

// LeaveOut returns the keys without those of scheduled jobs. It reads each key that has "/jobs/" in
// it until that is known to be one. A key that cannot be read stays.
func (j *Jobs) LeaveOut(ctx context.Context, store driver.Store, keys []string) []string {
	var reads sync.WaitGroup
	slots := make(chan struct{}, maxReads)
	for _, key := range keys {
		if !strings.Contains(key, "/jobs/") || j.knows(key) {
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			if e, err := store.Read(ctx, key); err == nil && IsJob(e.Value) {
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
