package dashboard

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// remembering is a dashboard with a history.
func remembering(t *testing.T, store driver.Store, file string) (s shown, stop func()) {
	t.Helper()
	return run(t, Config{
		Sources: []Source{{Name: "store", Store: store, Elections: []string{"billing", "other"}}}, History: file,
	})
}

func TestHistorySurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, file := memory.New(), filepath.Join(t.TempDir(), "history")
		s, stop := remembering(t, store, file)
		lead(t, store, "other", "x")
		for _, id := range []string{"a", "b", "c"} {
			leave := lead(t, store, "billing", id)
			time.Sleep(2 * lease)
			leave()
		}
		leave := lead(t, store, "billing", "d")
		time.Sleep(2 * lease)
		before, other := s.about("billing"), s.about("other")
		stop()
		down := time.Now()
		leave()
		lead(t, store, "billing", "e")
		time.Sleep(time.Minute)

		s, stop = remembering(t, store, file)
		up := time.Now()
		time.Sleep(lease)
		a := s.about("billing")
		if len(a.Terms) != 5 || a.Row.Leader != "e" || a.Terms[4].Leader != "e" {
			t.Fatalf("the terms are %+v", a.Terms)
		}
		for i, was := range before.Terms[:3] {
			if now := a.Terms[i]; now.Leader != was.Leader || now.Ended != was.Ended || !now.From.Equal(was.From) || !now.To.Equal(*was.To) || *now.Took != *was.Took {
				t.Errorf("%+v became %+v", was, now)
			}
		}
		if d := a.Terms[3]; d.Ended != "unknown" || !d.To.Equal(down) || d.Took != nil {
			t.Errorf("the term that ended unseen: %+v, down since %v", d, down)
		}
		if len(a.Unseen) != 1 || !a.Unseen[0].From.Equal(down) || !a.Unseen[0].To.Equal(up) {
			t.Errorf("not seen from %v to %v: %+v", down, up, a.Unseen)
		}
		if len(a.Events) <= len(before.Events) || a.Events[len(a.Events)-1] != before.Events[len(before.Events)-1] {
			t.Errorf("events: %+v, then %+v", before.Events, a.Events)
		}
		if o := s.about("other"); len(o.Terms) != 1 || o.Terms[0].To != nil || !o.Terms[0].From.Equal(other.Terms[0].From) || o.Row.Leader != "x" {
			t.Errorf("a leader that stayed: %+v", o)
		}
		stop()

		// It was killed during a write.
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, `{"source":"store","name":"bil`...), 0o600); err != nil {
			t.Fatal(err)
		}
		s, stop = remembering(t, store, file)
		if o := s.overview(""); o.Problem != "" {
			t.Errorf("the problem is %q", o.Problem)
		}
		time.Sleep(lease)
		if again := s.about("billing"); len(again.Terms) != 5 || len(again.Unseen) != 2 {
			t.Errorf("the third time: %+v", again)
		}
		stop()
	})
}

// Each leader is remembered, and the size of the file stays bounded.
func TestHistoryFileIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, file := memory.New(), filepath.Join(t.TempDir(), "history")
		s, stop := remembering(t, store, file)
		for range 6000 {
			leave := lead(t, store, "billing", strings.Repeat("a", 256))
			time.Sleep(time.Second)
			leave()
		}
		was := s.about("billing")
		stop()
		info, err := os.Stat(file)
		if err != nil || info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("the file: %v %v, %v", info.Size(), info.Mode(), err)
		}
		s, _ = remembering(t, store, file)
		time.Sleep(time.Second)
		if now := s.about("billing"); len(was.Terms) < 150 || len(now.Terms) != len(was.Terms) || now.Terms[0].Term != was.Terms[0].Term || now.Events[len(now.Events)-1] != was.Events[len(was.Events)-1] {
			t.Errorf("%d terms became %d, %d events %d", len(was.Terms), len(now.Terms), len(was.Events), len(now.Events))
		}
	})
}

func TestDamagedHistoryIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const good = `{"tenure_dashboard_history":1}` + "\n" +
			`{"source":"store","name":"billing","term":{"leader":"a","term":7,"from":"2000-01-01T00:00:00Z","to":"2000-01-01T00:01:00Z"}}` + "\n"
		for damaged, terms := range map[string]int{"": 0, "no history\n": 0, "no": 0, "{}\n": 0, good + "\x00\x00\n" + good: 1, good + good: 1} {
			dir := t.TempDir()
			file := filepath.Join(dir, "history")
			if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			s, stop := remembering(t, memory.New(), file)
			time.Sleep(5 * time.Second)
			if o := s.overview(""); !strings.Contains(o.Problem, "damaged in line") {
				t.Errorf("%q: the problem is %q", damaged, o.Problem)
			}
			if n := len(s.about("billing").Terms); n != terms {
				t.Errorf("%q: %d terms, want %d", damaged, n, terms)
			}
			stop()
			aside, _ := filepath.Glob(filepath.Join(dir, "history.damaged-*"))
			if len(aside) != 1 {
				t.Fatalf("%q: kept are %v", damaged, aside)
			}
			if text, err := os.ReadFile(aside[0]); err != nil || string(text) != damaged {
				t.Errorf("%q was kept as %q, %v", damaged, text, err)
			}
		}
	})
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
