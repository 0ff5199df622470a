package dashboard

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// remembers runs a Dashboard with a history.
func (s *scene) remembers(store driver.Store, file string) (stop func()) {
	s.Helper()
	return s.run(Config{
		Sources: []Source{{Name: "store", Store: store, Elections: []string{"billing", "other"}}}, History: file,
	})
}

func TestHistory(t *testing.T) {
	scenes{
		"it survives a restart": func(s *scene) {
			file := filepath.Join(s.TempDir(), "history")
			stop := s.remembers(s.store, file)
			s.lead(s.store, "other", "x")
			for _, id := range []string{"a", "b", "c"} {
				leave := s.lead(s.store, "billing", id)
				time.Sleep(2 * lease)
				leave()
			}
			leave := s.lead(s.store, "billing", "d")
			time.Sleep(2 * lease)
			before, other := s.about("billing"), s.about("other")
			stop()
			down := time.Now()
			leave()
			s.lead(s.store, "billing", "e")
			time.Sleep(time.Minute)

			stop = s.remembers(s.store, file)
			up := time.Now()
			time.Sleep(lease)
			a := s.about("billing")
			if len(a.Terms) != 5 || a.Row.Leader != "e" || a.Terms[4].Leader != "e" {
				s.Fatalf("the terms are %+v", a.Terms)
			}
			for i, was := range before.Terms[:3] {
				if now := a.Terms[i]; now.Leader != was.Leader || now.Ended != was.Ended || !now.From.Equal(was.From) || !now.To.Equal(*was.To) || *now.Took != *was.Took {
					s.Errorf("%+v became %+v", was, now)
				}
			}
			if d := a.Terms[3]; d.Ended != "unknown" || !d.To.Equal(down) || d.Took != nil {
				s.Errorf("the term that ended unseen: %+v, down since %v", d, down)
			}
			if len(a.Unseen) != 1 || !a.Unseen[0].From.Equal(down) || !a.Unseen[0].To.Equal(up) {
				s.Errorf("not seen from %v to %v: %+v", down, up, a.Unseen)
			}
			if len(a.Events) <= len(before.Events) || a.Events[len(a.Events)-1] != before.Events[len(before.Events)-1] {
				s.Errorf("events: %+v, then %+v", before.Events, a.Events)
			}
			if o := s.about("other"); len(o.Terms) != 1 || o.Terms[0].To != nil || !o.Terms[0].From.Equal(other.Terms[0].From) || o.Row.Leader != "x" {
				s.Errorf("a leader that stayed: %+v", o)
			}
			stop()

			// It was killed during a write.
			text, err := os.ReadFile(file)
			if err != nil {
				s.Fatal(err)
			}
			if err := os.WriteFile(file, append(text, `{"source":"store","name":"bil`...), 0o600); err != nil {
				s.Fatal(err)
			}
			stop = s.remembers(s.store, file)
			if o := s.overview(""); o.Problem != "" {
				s.Errorf("the problem is %q", o.Problem)
			}
			time.Sleep(lease)
			if again := s.about("billing"); len(again.Terms) != 5 || len(again.Unseen) != 2 {
				s.Errorf("the third time: %+v", again)
			}
			stop()
		},
		"it has the outages of the store": func(s *scene) {
			file := filepath.Join(s.TempDir(), "history")
			s.lead(s.store, "billing", "a")
			s.way.polled = true
			for n := range 3 {
				stop := s.remembers(s.way, file)
				for _, off := range []bool{false, true, false} {
					s.way.off.Store(off)
					time.Sleep(time.Minute)
				}
				if all := s.about("billing").Outages; len(all) != n+1 || all[0].To == nil {
					s.Errorf("the outages are %+v", all)
				}
				stop()
			}
		},
		// Each leader is remembered, and the size of the file stays bounded.
		"the file is bounded": func(s *scene) {
			file := filepath.Join(s.TempDir(), "history")
			stop := s.remembers(s.store, file)
			for range 6000 {
				leave := s.lead(s.store, "billing", strings.Repeat("a", 256))
				time.Sleep(time.Second)
				leave()
			}
			was := s.about("billing")
			stop()
			info, err := os.Stat(file)
			if err != nil || info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
				s.Errorf("the file: %v %v, %v", info.Size(), info.Mode(), err)
			}
			s.remembers(s.store, file)
			time.Sleep(time.Second)
			if now := s.about("billing"); len(was.Terms) < 150 || len(now.Terms) != len(was.Terms) || now.Terms[0].Term != was.Terms[0].Term || now.Events[len(now.Events)-1] != was.Events[len(was.Events)-1] {
				s.Errorf("%d terms became %d, %d events %d", len(was.Terms), len(now.Terms), len(was.Events), len(now.Events))
			}
		},
	}.play(t)
}

func TestDamagedHistoryIsSetAside(t *testing.T) {
	const good = `{"tenure_dashboard_history":1}` + "\n" +
		`{"source":"store","name":"billing","term":{"leader":"a","term":7,"from":"2000-01-01T00:00:00Z","to":"2000-01-01T00:01:00Z"}}` + "\n"
	all := scenes{}
	for damaged, terms := range map[string]int{"": 0, "no history\n": 0, "no": 0, "{}\n": 0, good + "\x00\x00\n" + good: 1, good + good: 1} {
		all[fmt.Sprintf("%q", damaged)] = func(s *scene) {
			dir := s.TempDir()
			file := filepath.Join(dir, "history")
			if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
				s.Fatal(err)
			}
			stop := s.remembers(s.store, file)
			time.Sleep(5 * time.Second)
			if o := s.overview(""); !strings.Contains(o.Problem, "damaged in line") {
				s.Errorf("the problem is %q", o.Problem)
			}
			if n := len(s.about("billing").Terms); n != terms {
				s.Errorf("%d terms, want %d", n, terms)
			}
			stop()
			aside, _ := filepath.Glob(filepath.Join(dir, "history.damaged-*"))
			if len(aside) != 1 {
				s.Fatalf("kept are %v", aside)
			}
			if text, err := os.ReadFile(aside[0]); err != nil || string(text) != damaged {
				s.Errorf("it was kept as %q, %v", text, err)
			}
		}
	}
	all.play(t)
}

func TestUnusableHistories(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "history")
	const later = `{"tenure_dashboard_history":2}` + "\n"
	if err := os.WriteFile(file, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(file string) error {
		_, err := New(Config{Sources: []Source{{Name: "store", Store: memory.New()}}, History: file})
		return err
	}
	for range 2 {
		if err := try(file); err == nil || !strings.Contains(err.Error(), "later version of the dashboard has written it: run that one") {
			t.Errorf("of a later version: %v", err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != later {
		t.Errorf("the file holds %q, %v", text, err)
	}
	for wrong, want := range map[string]string{
		dir:                                   "no regular file: give another",
		filepath.Join(dir, "none", "history"): filepath.Join(dir, "none") + " does not exist: make it",
	} {
		if err := try(wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", wrong, err, want)
		}
	}
	used := filepath.Join(dir, "used")
	if err := try(used); err != nil {
		t.Fatal(err)
	}
	if err := try(used); runtime.GOOS == "linux" && (err == nil || !strings.Contains(err.Error(), "another process uses it: give each")) {
		t.Errorf("in use: %v", err)
	}
}

var (
	noon    = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	billing = key{"store", "billing"}
)

// opened opens the history in a file. Call leave before the file is opened again.
func opened(t *testing.T, path string, now time.Time) *history {
	t.Helper()
	h, err := openHistory(path, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(h) })
	return h
}

// leave stops using a file as in a crash: nothing more is written.
func leave(h *history) {
	h.out.unlock()
	_ = h.out.file.Close()
}

// happens adds an event to a history. It returns the whole history as the election remembers it.
func happens(h *history, id uint64, leader string) past {
	one := event{ID: id, At: noon, What: "elected", Leader: leader}
	h.add(line{Source: billing.Source, Name: billing.Name, Event: &one})
	return past{events: []event{one}}
}

// all passes each line of the history to add.
func (p past) all(add func(line)) { p.write(billing, add) }

func savedOK(t *testing.T, h *history, p past, now time.Time) {
	t.Helper()
	if err := h.save(p.all, now); err != nil {
		t.Fatal(err)
	}
}

// The disk accepted nothing for so long that lines were lost. Older lines that waited must not
// replace a later rewrite.
func TestNoOlderLineFollowsARewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := opened(t, path, noon)
	id, leader := uint64(0), strings.Repeat("a", 1<<20)
	for !h.lost {
		id++
		happens(h, id, leader)
	}
	id++
	p := happens(h, id, leader)
	savedOK(t, h, p, noon)
	leave(h)
	events := opened(t, path, noon).of(billing).events
	if got := events[len(events)-1].ID; got != id {
		t.Errorf("the last event was %d, and is %d after a restart", id, got)
	}
}

// After a kill right after a rewrite, the dashboard knows until when it has seen the elections.
func TestRewriteStoresWhenElectionsWereSeen(t *testing.T) {
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

// watchedWriter fails the test if it is used while the history is locked: then each event of an
// election would wait for the disk.
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

// A failed rewrite leaves nothing behind: no file on a disk that may be full, and no open file.
func TestFailedRewriteLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := opened(t, path, noon)
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	h.lost = true
	for range 3 {
		if err := h.save(past{}.all, noon); err == nil {
			t.Fatal("a directory was replaced")
		}
	}
	if _, err := os.Lstat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new file: %v", err)
	}
	open, _ := filepath.Glob("/proc/self/fd/*") // none on other systems
	for _, fd := range open {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, path+".new") {
			t.Errorf("%s is still open", to)
		}
	}
}

func TestRemovedFileIsRewritten(t *testing.T) {
	const strange = "strange\n"
	for what, harm := range map[string]func(path string) error{
		"deleted": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte(strange), 0o600))
		},
		"cut off":    func(path string) error { return os.Truncate(path, 0) },
		"written to": func(path string) error { return os.WriteFile(path, []byte(strange), 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "history")
		h := opened(t, path, noon)
		p := happens(h, 1, "a")
		savedOK(t, h, p, noon)
		if err := harm(path); err != nil {
			t.Fatal(err)
		}
		savedOK(t, h, p, noon)
		leave(h)
		h = opened(t, path, noon)
		if all := h.of(billing).events; len(all) != 1 || h.problem() != "" {
			t.Errorf("%s: the events are %v, the problem is %q", what, all, h.problem())
		}
	}
}

// A file or link in the place of the new file is neither followed nor adopted.
func TestNewFileIsSafe(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "history"), filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("precious"), 0o600), os.Symlink(other, path+".new")); err != nil {
		t.Skip(err)
	}
	leave(opened(t, path, noon))
	if text, err := os.ReadFile(other); err != nil || string(text) != "precious" {
		t.Errorf("the target of a link holds %q, %v", text, err)
	}
	if err := errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Chmod(path+".new", 0o644)); err != nil {
		t.Fatal(err)
	}
	opened(t, path, noon)
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the history is %v, %v", info, err)
	}
}

// A file with several names is one file: the link stays, and a second process is refused.
func TestLinkToTheHistory(t *testing.T) {
	for _, exists := range []bool{true, false} {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "history"), filepath.Join(dir, "link")
		if err := os.Symlink("history", link); err != nil {
			t.Skip(err)
		}
		if exists {
			leave(opened(t, path, noon))
		}
		h := opened(t, link, noon)
		if to, err := os.Readlink(link); err != nil || to != "history" {
			t.Errorf("the link leads to %q, %v", to, err)
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the file: %v, %v", info, err)
		}
		if _, err := openHistory(path, noon); err == nil && runtime.GOOS == "linux" {
			t.Error("two use it")
		}
		leave(h)
	}
}

// Elections that were removed long ago are forgotten. If there are many, the oldest are.
func TestRemovedElectionsAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := opened(t, path, noon)
	old, late := noon.Add(-forgetAfter-time.Hour), noon.Add(-forgetAfter+time.Hour)
	p := past{terms: []term{{Leader: "a", Term: 1, From: old}}}
	savedOK(t, h, p, noon) // it still leads
	for name, at := range map[string]time.Time{"old": old, "late": late} {
		h.add(line{Source: "store", Name: name, Event: &event{ID: 1, At: at}})
		h.add(line{Source: "store", Name: name + "er", Term: &term{Leader: "a", Term: 1, From: old, To: &at}})
	}
	h.add(line{Source: billing.Source, Name: billing.Name, Term: &p.terms[0]})
	savedOK(t, h, p, noon)
	leave(h)
	h = opened(t, path, noon.AddDate(10, 0, 0)) // the length of the down time does not matter
	if kept := slices.Sorted(maps.Keys(namesOf(h.pasts))); !slices.Equal(kept, []string{"billing", "late", "lateer"}) {
		t.Errorf("kept are %v", kept)
	}
	for i := range maxElections {
		h.take(&line{Source: "store", Name: strconv.Itoa(i), Event: &event{ID: 1, At: noon}})
	}
	h.forgetOld(noon)
	if n := len(h.pasts); n != maxElections || h.pasts[key{"store", "late"}].events != nil {
		t.Errorf("%d elections are remembered, want %d", n, maxElections)
	}
}

func namesOf(pasts map[key]past) map[string]bool {
	names := map[string]bool{}
	for k := range pasts {
		names[k.Name] = true
	}
	return names
}

// The clock went back since the last run.
func TestNoTermOrGapEndsBeforeItBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := opened(t, path, noon)
	before := noon.Add(-time.Hour)
	p := past{terms: []term{{Leader: "a", Term: 1, From: noon.Add(time.Hour), To: &before}, {Leader: "b", Term: 2, From: noon.Add(time.Hour)}}}
	h.lost = true
	savedOK(t, h, p, noon)
	leave(h)
	h = opened(t, path, before)
	terms := h.of(billing).terms
	if len(terms) != 2 || len(h.gaps) != 0 {
		t.Fatalf("the terms are %+v, the gaps %v", terms, h.gaps)
	}
	for _, one := range terms {
		if one.To == nil || !one.To.Equal(one.From) {
			t.Errorf("%+v", one)
		}
	}
}
