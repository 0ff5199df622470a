package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestStandardLibraryAlone: the program imports no package of the project, and none of others.
func TestStandardLibraryAlone(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if first, _, _ := strings.Cut(path, "/"); err != nil || strings.Contains(first, ".") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// record is one of a journal, in the order of its bytes.
type record struct {
	At              int64
	Token           uint64
	Candidate, What uint32
	PID, Root       uint32
}

// scene is an honest history of two terms: c1 leads with token 3, hands over, and c2 leads with
// token 5. Root 11 has a descendant 12.
type scene struct {
	journal []record
	traces  map[string][]string
}

func honest() scene {
	claim := func(id string, at, token int) []string {
		return []string{
			fmt.Sprintf(`{"in":"start","by":"%s-x","settings":{"id":"%[1]s"}}`, id),
			fmt.Sprintf(`{"in":"next","by":"%s-x","at":[%d,0,0],"send":{"op":1,"record":`+
				`{"leaderID":"%[1]s","term":%[3]d,"seq":1}}}`, id, at, token),
			fmt.Sprintf(`{"in":"written","by":"%s-x","at":[%d,0,0],"op":1,"outcome":"applied"}`, id, at+5),
		}
	}
	release := fmt.Sprintf(`{"in":"next","by":"c1-x","at":[%d,0,0],"send":{"op":2,"record":{"leaderID":"c1","term":3,"seq":2,"released":true}}}`, 200)
	return scene{
		journal: []record{
			{110, 3, 1, began, 11, 11}, {111, 3, 1, acted, 11, 11}, {112, 3, 1, acted, 12, 11}, {150, 3, 1, asked, 11, 11},
			{160, 3, 1, acted, 12, 11}, {170, 3, 1, acted, 11, 11}, {180, 3, 1, ended, 11, 11},
			{310, 5, 2, began, 21, 21}, {311, 5, 2, acted, 21, 21}, {320, 5, 2, acted, 21, 21},
		},
		traces: map[string][]string{"c1": append(claim("c1", 100, 3), release), "c2": claim("c2", 300, 5)},
	}
}

// judged returns what the program prints, and its exit code.
func (s scene) judged(t *testing.T, flags ...string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	var text bytes.Buffer
	for _, r := range s.journal {
		if err := binary.Write(&text, binary.LittleEndian, r); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{filepath.Join(dir, "journal")}
	files := map[string]string{names[0]: text.String()}
	for name, lines := range s.traces {
		names = append(names, filepath.Join(dir, name))
		// It was killed while it wrote.
		files[names[len(names)-1]] = strings.Join(lines, "\n") + "\n" + `{"in":"ne`
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	code := run(append(flags, names...), &out, &out)
	return out.String(), code
}

func TestHonest(t *testing.T) {
	for _, flags := range [][]string{nil, {"-asks"}, {"-jobs"}} {
		if got, code := honest().judged(t, flags...); code != 0 || got != "6 acts with 2 tokens, 2 claims and 1 releases keep the rules\n" {
			t.Errorf("%q: %d %s", flags, code, got)
		}
	}
}

// TestFalsified: each edit of the honest history is refused by the rules that it breaks, and by no
// other.
func TestFalsified(t *testing.T) {
	add := func(at int, r record) func(*scene) {
		return func(s *scene) { s.journal = slices.Insert(s.journal, at, r) }
	}
	replace := func(trace, old, now string) func(*scene) {
		return func(s *scene) {
			for i, l := range s.traces[trace] {
				s.traces[trace][i] = strings.ReplaceAll(l, old, now)
			}
		}
	}
	withoutTraces := func(then func(*scene)) func(*scene) {
		return func(s *scene) { s.traces = nil; then(s) }
	}
	for _, c := range []struct {
		name, rules string
		edit        func(*scene)
		flags       []string
	}{
		{"a late act", "order overlap", withoutTraces(add(9, record{315, 3, 1, acted, 12, 11})), nil},
		{"a late act by the clock alone", "overlap", withoutTraces(add(5, record{315, 3, 1, acted, 12, 11})), nil},
		{"an act at the same moment", "overlap", withoutTraces(add(5, record{311, 3, 1, acted, 12, 11})), nil},
		{"an act that was suspended", "order", withoutTraces(add(9, record{175, 3, 1, acted, 12, 11})), nil},
		{"a question that was suspended", "", withoutTraces(add(9, record{175, 3, 1, acted, 12, 11})), []string{"-asks"}},
		{"a token that falls", "token", withoutTraces(add(10, record{400, 4, 3, acted, 31, 31})), nil},
		{"a second holder", "holder", withoutTraces(add(10, record{400, 5, 3, acted, 31, 31})), nil},
		{"a second process", "holder", withoutTraces(add(10, record{400, 5, 2, acted, 31, 31})), nil},
		{"a second run of a job", "", withoutTraces(add(10, record{400, 5, 2, acted, 31, 31})), []string{"-jobs"}},
		{"an act after the end", "end", withoutTraces(add(7, record{190, 3, 1, acted, 11, 11})), nil},
		{"a descendant after the end", "", withoutTraces(add(7, record{190, 3, 1, acted, 12, 11})), nil},
		{"an act after the release", "release", add(7, record{201, 3, 1, acted, 12, 11}), nil},
		{"an act before the claim", "claim", add(7, record{299, 5, 2, acted, 21, 21}), nil},
		{"one token claimed twice", "claims", replace("c2", `"term":5`, `"term":3`), nil},
		{"a lower token claimed later", "claims", replace("c2", `"term":5`, `"term":2`), nil},
		{"another candidate has claimed", "holder", replace("c2", `"id":"c2"`, `"id":"c3"`), nil},
	} {
		s := honest()
		c.edit(&s)
		got, code := s.judged(t, c.flags...)
		var rules []string
		for line := range strings.Lines(got) {
			if rule, _, ok := strings.Cut(line, ": "); ok {
				rules = append(rules, rule)
			}
		}
		if strings.Join(rules, " ") != c.rules || (code == 1) != (c.rules != "") {
			t.Errorf("%s: refused by %q with exit code %d, want %q:\n%s", c.name, rules, code, c.rules, got)
		}
	}
}

// TestDamaged: bytes that are no history are no verdict.
func TestDamaged(t *testing.T) {
	for name, edit := range map[string]func(*scene){
		"unknown kind":    func(s *scene) { s.journal[0].What = 9 },
		"no line of JSON": func(s *scene) { s.traces["c1"][1] = "x" },
	} {
		s := honest()
		edit(&s)
		if got, code := s.judged(t); code != 2 {
			t.Errorf("%s: %d %s", name, code, got)
		}
	}
	var out bytes.Buffer
	short := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(short, make([]byte, 33), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{short}, {short + "-missing"}, nil, {"-x"}} {
		if code := run(args, &out, &out); code != 2 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}
