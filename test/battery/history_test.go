//go:build integration && linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/command"
)

// TestSecondJudge: a run fails if test/history finds a fault, and a control if it finds none where
// the witness finds one. A trace that does not replay fails a run.
func TestSecondJudge(t *testing.T) {
	binary, err := command.BuildIn(t.Context(), t.TempDir(), historyPackage)
	if err != nil {
		t.Fatal(err)
	}
	act := func(at int64, token uint64) witness.Record {
		return witness.Record{At: at, Token: token, Candidate: uint32(token), What: witness.Act, PID: uint32(token), Root: uint32(token)}
	}
	sound := []witness.Record{act(1, 1), act(2, 2)}
	faulty := []witness.Record{act(1, 1), act(2, 2), act(3, 1)}
	for _, c := range []struct {
		name    string
		journal []witness.Record
		control bool
		trace   string
		says    string
	}{
		{"sound", sound, false, "", ""},
		{"faulty", faulty, false, "", "overlap: "},
		{"a control shows its flaw", faulty, true, "", ""},
		{"a control shows no flaw", sound, true, "", ""},
		{"a trace", sound, false, `{"in":"next","by":"a"}` + "\n", "has not started"},
	} {
		s := bareStage(t)
		s.b.judge, s.dir, s.control = binary, t.TempDir(), c.control
		w, err := witness.Open(s.journal())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.journal {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		if c.trace != "" {
			if err := os.WriteFile(filepath.Join(s.dir, "c1-1.trace"), []byte(c.trace), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := outcome{acts: witness.Judge(c.journal)}
		s.second(&o)
		if got := strings.Join(o.unsafe, "\n"); (got == "") != (c.says == "") || !strings.Contains(got, c.says) || len(o.errs) > 0 || o.histories != 1 {
			t.Errorf("%s: %q, %v", c.name, got, o.errs)
		}
		// The witness is wrong.
		o = outcome{acts: witness.Verdict{Stale: 1}}
		if len(c.journal) == len(faulty) {
			o = outcome{}
		}
		if s.second(&o); c.control && len(o.unsafe) == 0 {
			t.Errorf("%s: the judges differ, and nothing is said", c.name)
		}
	}
	s := bareStage(t)
	s.b.judge, s.dir = filepath.Join(t.TempDir(), "missing"), t.TempDir()
	var o outcome
	if s.second(&o); len(o.errs) == 0 || o.verdict().String() == "ok" {
		t.Error("a judge that is missing is not missed")
	}
}
