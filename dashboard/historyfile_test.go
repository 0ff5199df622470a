package dashboard

import (
	"bufio"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	noon    = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	billing = key{"store", "billing"}
)

// opened is the history in a file, and must be left before the file is opened again.
func opened(t *testing.T, path string, now time.Time) *history {
	t.Helper()
	h, err := openHistory(path, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(h) })
	return h
}

// leave ends the use of a file as a crash does: nothing more is written.
func leave(h *history) {
	h.out.unlock()
	_ = h.out.file.Close()
}

// happens adds an event to a history and returns all of it as the election would remember it.
func happens(h *history, id uint64, leader string) past {
	one := event{ID: id, At: noon, What: "elected", Leader: leader}
	h.add(line{Source: billing.Source, Name: billing.Name, Event: &one})
	return past{events: []event{one}}
}

// all gives what is observed at a time.
func (p past) all(add func(line)) { p.write(billing, add) }

func savedOK(t *testing.T, h *history, p past, now time.Time) {
	t.Helper()
	if err := h.save(p.all, now); err != nil {
		t.Fatal(err)
	}
}

// A disk took nothing for so long that lines were lost. The older ones that had waited must not
// replace what a rewrite has saved.
func TestNoOlderLineFollowsARewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := opened(t, path, noon)
	var p past
	id, leader := uint64(0), strings.Repeat("a", 1<<20)
	for !h.lost {
		id++
		p = happens(h, id, leader)
	}
	id++
	p = happens(h, id, leader)
	savedOK(t, h, p, noon)
	leave(h)
	events := opened(t, path, noon).of(billing).events
	if got := events[len(events)-1].ID; got != id {
		t.Errorf("the last event was %d, and is %d after a restart", id, got)
	}
}

// Killed right after a rewrite, the dashboard knows until when it has seen the elections.
func TestARewriteSaysWhenTheElectionsWereSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	leave(opened(t, path, noon)) // a first start, nothing saved yet
	h := opened(t, path, noon.Add(time.Minute))
	savedOK(t, h, past{}, noon.Add(time.Minute))
	h.lost = true
	p := past{terms: []term{{Leader: "a", Term: 1, From: noon}}}
	savedOK(t, h, p, noon.Add(2*time.Minute))
	leave(h)
	day := noon.AddDate(0, 0, 1)
	h = opened(t, path, day)
	want := []gap{{noon, noon.Add(time.Minute)}, {noon.Add(2 * time.Minute), day}}
	if !slices.Equal(h.gaps, want) {
		t.Errorf("the gaps are %v, want %v", h.gaps, want)
	}
	if a := h.of(billing).terms[0]; a.To == nil || !a.To.Equal(want[1].From) {
		t.Errorf("the term that was open: %+v", a)
	}
}

// watchedWriter fails the test if it is used while the history is locked: each event of an election
// would wait for the disk.
type watchedWriter struct {
	*testing.T
	h *history
}

func (w watchedWriter) Write(text []byte) (int, error) {
	if !w.h.mu.TryLock() {
		w.Fatal("the history is locked while the disk is written")
	}
	w.h.mu.Unlock()
	return len(text), nil
}

func TestNoEventWaitsForTheDisk(t *testing.T) {
	h := opened(t, filepath.Join(t.TempDir(), "history"), noon)
	h.take(&line{Source: "store", Name: "gone", Term: &term{Leader: strings.Repeat("a", 1<<20), Term: 1}})
	w := bufio.NewWriter(watchedWriter{t, h})
	h.remember(w, past{}.all, noon)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}
