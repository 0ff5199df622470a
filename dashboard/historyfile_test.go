package dashboard

import (
	"path/filepath"
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
