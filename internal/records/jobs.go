package records

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/race"
)

// Job is the state of a scheduled job, which package schedule keeps beside the record of its
// election. Times are by the wall clocks of the leaders. The names in JSON are those in the store.
type Job struct {
	// Updated is when the leader ID wrote it, in the term Token.
	Updated time.Time `json:"at"`
	ID      string    `json:"id"`
	Token   uint64    `json:"token"`
	// Plan is the schedule and its zone. Next is the planned instant of the next tick, as of
	// Updated; zero if that is not known.
	Plan string    `json:"plan"`
	Next time.Time `json:"next,omitzero"`
	// Success is the last run that finished.
	Success struct {
		Ended time.Time `json:"ended,omitzero"`
	} `json:"success"`
	// Ticks are the last ones that started, in the order of their planned instants.
	Ticks  []Tick `json:"ticks"`
	Missed struct {
		Late    int       `json:"late"`
		Overlap int       `json:"overlap"`
		Last    time.Time `json:"last,omitzero"`
	} `json:"missed"`
	// Day counts the ticks of the last day by the hours of their planned instants. The last number
	// of a list is of the hour that begins at Hour, and those before it of earlier ones.
	Day struct {
		Hour     time.Time `json:"hour,omitzero"`
		Finished []int     `json:"finished,omitempty"`
		Failed   []int     `json:"failed,omitempty"`
		Lost     []int     `json:"lost,omitempty"`
		Missed   []int     `json:"missed,omitempty"`
	} `json:"day"`
}

// Tick is one tick of a job.
type Tick struct {
	Planned time.Time `json:"planned"`
	// Name identifies the tick of a job without a schedule.
	Name string `json:"name,omitempty"`
	// State is started, finished, failed or lost.
	State   string    `json:"state"`
	ID      string    `json:"id"`
	Token   uint64    `json:"token"`
	Attempt int       `json:"attempt"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Code    int       `json:"code,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// ReadJob returns the state of a job, or false if the value is none.
func ReadJob(value []byte) (j Job, ok bool) {
	return j, IsJob(value) && json.Unmarshal(value, &j) == nil
}

// IsJob reports whether a value is the state of a scheduled job.
func IsJob(value []byte) bool {
	var state struct{ Format string }
	return json.Unmarshal(value, &state) == nil && strings.HasPrefix(state.Format, "tenure-ticks/")
}

// SplitJob returns the election and the name of the job whose state a key holds.
func SplitJob(key string) (election, job string) {
	if i := strings.LastIndex(key, jobsFolder); i >= 0 {
		return key[:i], key[i+len(jobsFolder):]
	}
	return key, ""
}

// JobKey returns the key that SplitJob splits.
func JobKey(election, job string) string { return election + jobsFolder + job }

const jobsFolder = "/jobs/"

// Jobs remembers which keys hold no election but the state of a scheduled job, or the probe of
// `tenure doctor`. The zero value is ready.
type Jobs struct {
	mu    sync.Mutex
	known map[string]content
}

// content is what a key holds.
type content int

const (
	electionRecord content = iota // or it is not known yet
	jobState
	probe
)

// maxReads is how many keys are read at once.
const maxReads = 16

// Split returns the keys of elections and those of scheduled jobs, and leaves out those of probes.
// It reads each key that has "/jobs/" in it, or begins like that of a probe, until that is known to
// be one. A key that cannot be read is an election.
func (j *Jobs) Split(ctx context.Context, store driver.Store, keys []string) (elections, jobs []string) {
	var reads sync.WaitGroup
	slots := make(chan struct{}, maxReads)
	for _, key := range keys {
		if !strings.Contains(key, jobsFolder) && !strings.HasPrefix(key, race.Prefix) || j.content(key) != electionRecord {
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			if e, err := store.Read(ctx, key); err == nil {
				j.note(key, e.Value)
			}
		})
	}
	reads.Wait()
	for _, key := range keys {
		switch j.content(key) {
		case electionRecord:
			elections = append(elections, key)
		case jobState:
			jobs = append(jobs, key)
		case probe:
		}
	}
	return elections, jobs
}

func (j *Jobs) content(key string) content {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[key]
}

func (j *Jobs) note(key string, value []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known == nil {
		j.known = map[string]content{}
	}
	switch {
	case IsJob(value):
		j.known[key] = jobState
	case race.IsProbe(value):
		j.known[key] = probe
	}
}
