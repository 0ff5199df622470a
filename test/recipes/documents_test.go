package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/timing"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// line is one line of a document, with its continuations.
type line struct {
	number int
	text   string
}

// code returns the lines of a document that are code: fenced, or indented as far.
func code(document string) []line {
	var all []line
	fenced, before := false, ""
	for n, l := range strings.Split(document, "\n") {
		begun, continued := strings.CutSuffix(before+l, "\\")
		switch {
		case strings.HasPrefix(l, "```"):
			fenced = !fenced
		case !fenced && before == "" && !strings.HasPrefix(l, "    "):
		case continued:
			before = begun
			continue
		default:
			all = append(all, line{n + 1, begun})
		}
		before = ""
	}
	return all
}

// started returns the arguments of each tenure that a shell line starts with the command run. Other
// text may stand before it.
func started(t *testing.T, name, line string) [][]string {
	t.Helper()
	if !strings.Contains(line, "tenure run ") {
		return nil
	}
	script, err := syntax.NewParser().Parse(strings.NewReader(line), name)
	if err != nil {
		t.Fatalf("%s: %v in %s", name, err, line)
	}
	var all [][]string
	syntax.Walk(script, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok {
			return true
		}
		words, err := expand.Fields(&expand.Config{}, call.Args...)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, line)
		}
		for i := range max(0, len(words)-1) {
			if filepath.Base(words[i]) == "tenure" && words[i+1] == "run" {
				all = append(all, words[i+1:])
				break
			}
		}
		return true
	})
	return all
}

func TestCommandLinesAreFoundInDocuments(t *testing.T) {
	const document = "Use `tenure run -- no`.\n\n    tenure run --store \"a b\" \\\n      -- one\n\n```sh\nsudo /bin/tenure run -- two | cat # tenure run -- not\n```\n"
	var got []string
	for _, l := range code(document) {
		for _, args := range started(t, "document", l.text) {
			got = append(got, fmt.Sprintf("%d%q", l.number, args))
		}
	}
	want := map[string]bool{`4["run" "--store" "a b" "--" "one"]`: true, `7["run" "--" "two"]`: true}
	for _, g := range got {
		delete(want, g)
	}
	if len(got) != 2 || len(want) != 0 {
		t.Errorf("got %v, missing %v", got, want)
	}
}

// rows returns the rows of the page's table whose first line begins like this, without its frame.
func rows(t *testing.T, page, begin string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(text(t, page), "\n"+begin)
	if !ok {
		t.Fatalf("%s: no table begins with %s", page, begin)
	}
	var all [][]string
	for i, l := range strings.Split(rest, "\n") {
		if i > 0 && !strings.HasPrefix(l, "|") {
			break
		}
		if i > 1 {
			cells := strings.Split(strings.Trim(l, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	return all
}

// The last part of --stop-within is for killing: a quarter, and at most this time.
const reserve = time.Second

func TestGuideComputesTheTimesCorrectly(t *testing.T) {
	all := rows(t, "docs/run.md", "| --lease |")
	for _, cells := range all {
		var times []time.Duration
		for _, cell := range cells {
			d, err := time.ParseDuration(cell)
			must(t, err)
			times = append(times, d)
		}
		lease, stop := times[0], times[1] // with the drift that clocks on Linux may have
		over := lease - timing.Margin(tenure.Config{Lease: lease, StopWithin: stop, Tuning: tenure.Tuning{Drift: 0.01}})
		want := []time.Duration{lease, min(lease/5, 5*time.Second), lease / 3, over, over + stop - min(stop/4, reserve), lease}
		for i, got := range times {
			if diff := (got - want[i]).Abs(); diff > 10*time.Millisecond {
				t.Errorf("lease %v, column %d: %v, and it is %v", lease, i+1, got, want[i])
			}
		}
	}
	if len(all) < 3 {
		t.Errorf("%d rows", len(all))
	}
}

// root is the top of the repository.
const root = "../.."

// text reads a file of the repository.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	must(t, err)
	return string(b)
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
