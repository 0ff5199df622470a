package protocol_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The timelines in testdata teach the protocol and test it. They have the inputs of one member, one
// on each line, and, indented, its answers. testdata/README.md explains the words.

var update = flag.Bool("update", false, "rewrite what the timelines expect; review every line of it")

func TestTimelines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no timelines: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) { timelines(t, name) })
	}
}

// timelines plays every timeline of one file.
func timelines(t *testing.T, name string) {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var played strings.Builder
	line := 1
	for _, s := range sections(string(b)) {
		title, _, _ := strings.Cut(strings.TrimPrefix(s, "== "), "\n")
		if !strings.HasPrefix(s, "== ") {
			title = "preamble"
		}
		t.Run(title, func(t *testing.T) {
			got := play(t, s)
			played.WriteString(got)
			if got != s && !*update {
				differ(t, name, line, s, got)
			}
		})
		line += strings.Count(s, "\n")
	}
	if *update {
		if err := os.WriteFile(name, []byte(played.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sections cuts a file before every title; the first is the preamble.
func sections(text string) []string {
	var out []string
	for {
		i := strings.Index(text, "\n== ")
		if i < 0 {
			return append(out, text)
		}
		out = append(out, text[:i+1])
		text = text[i+1:]
	}
}

// play returns the section with the real answers in place of the expected ones.
func play(t *testing.T, section string) string {
	var b strings.Builder
	s := newStage()
	for _, line := range strings.SplitAfter(section, "\n") {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "  "):
			continue // an expectation
		case word == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "== "):
			b.WriteString(line)
			continue
		}
		b.WriteString(line)
		out, err := s.input(strings.Fields(word))
		if err != nil {
			t.Errorf("%s: %v", word, err)
			out = []string{"!! " + err.Error()}
		}
		for _, o := range out {
			b.WriteString("  " + o + "\n")
		}
	}
	return b.String()
}

// differ reports the first line that is not as expected.
func differ(t *testing.T, name string, first int, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) {
			t.Errorf("%s:%d: want %q and nothing more came", name, first+i, w[i])
			return
		}
		if w[i] != g[i] {
			t.Errorf("%s:%d:\nwant %s\ngot  %s", name, first+i, w[i], g[i])
			return
		}
	}
	t.Errorf("%s:%d: more came than is expected: %q", name, first+len(w), g[len(w)])
}
