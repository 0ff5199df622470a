package recipes

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

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
