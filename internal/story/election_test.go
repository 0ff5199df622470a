package story_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
)

// observed is the story of an election, as an observer of a real one sees it.
type observed struct {
	mu    sync.Mutex
	story story.Story
	all   []story.Item
}

func (o *observed) add(all []story.Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range all {
		if i.What != story.Renewed {
			o.all = append(o.all, i)
		}
	}
}

func (o *observed) kinds() (all []story.What) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range o.all {
		all = append(all, i.What)
	}
	return all
}

// observe begins to observe a store.
func observe(t *testing.T, s driver.Store) *observed {
	t.Helper()
	o := &observed{}
	cfg := tenure.Config{ID: "observer", OnEvent: func(e tenure.Event) { o.add(o.story.Hear(e)) }}
	cfg.Tuning.Poll, cfg.Tuning.PollStable = time.Second, time.Second
	e, err := tenure.New(records.Tap(s, func(_ string, e driver.Entry, pushed bool) {
		o.add(o.story.See(e, pushed, time.Now()))
	}), "billing", cfg)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range e.Watch(t.Context()) {
		}
	}()
	return o
}

// An observer finds the record of a leader that is dead, and then a candidate takes over. A second
// observer finds the living leader.
func TestObserversOfADeadAndALivingLeader(t *testing.T) {
	for name, open := range map[string]func() driver.Store{
		"pushed": func() driver.Store { return memory.New() }, "polled": func() driver.Store { return memory.NewPolled() },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { observesBoth(t, open()) }) })
	}
}

func observesBoth(t *testing.T, s driver.Store) {
	t.Helper()
	const dead = `{"leaderID":"w1","leaderAddr":"","lastUpdated":"1999-12-31T23:37:00Z","term":7,"leaseMillis":15000,` +
		`"incarnation":"i","seq":3,"nonce":"n"}`
	if _, err := s.CompareAndSwap(t.Context(), "billing", "", []byte(dead)); err != nil {
		t.Fatal(err)
	}
	first := observe(t, s)
	time.Sleep(20 * time.Second)
	if got := first.kinds(); !slices.Equal(got, []story.What{story.Named, story.Nobody}) {
		t.Fatalf("of a dead leader: %v", got)
	}
	candidate, err := tenure.New(s, "billing", tenure.Config{ID: "w2"})
	if err != nil {
		t.Fatal(err)
	}
	term, err := candidate.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	second := observe(t, s)
	time.Sleep(20 * time.Second)
	if got := first.kinds(); !slices.Equal(got, []story.What{story.Named, story.Nobody, story.Elected}) {
		t.Fatalf("of its successor: %v", got)
	}
	if next := first.all[2]; next.AtLeast || !next.TookAtLeast || next.Took < 20*time.Second || next.TookByClock < 23*time.Minute {
		t.Errorf("the successor is %+v", next.Fact)
	}
	if got := second.kinds(); !slices.Equal(got, []story.What{story.Named, story.Elected}) || !second.all[1].AtLeast {
		t.Errorf("of a living leader: %v", got)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
}
