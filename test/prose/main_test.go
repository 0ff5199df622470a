package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("word ", 21)
	for name, c := range map[string]struct {
		file, source string
		ok           bool
	}{
		"plain":              {"a.go", "package a\n\n// B returns the leader.\n", true},
		"a banned word":      {"a.go", "package a // made anew\n", false},
		"only in code":       {"a.go", "package a\n\nvar anew = \"whoever\"\n", true},
		"in a block comment": {"a.go", "package a\n\n/*\nB befalls C.\n*/\n", false},
		"too many vague":     {"a.md", "What, whose and nobody.\n", false},
		"a wide line":        {"a.md", long + "\n", false},
		"a wide comment":     {"a.go", "package a\n\n// " + long + "\n", false},
		"wide code":          {"a.go", "package a\n\nvar b = \"" + long + "\"\n", true},
		"a wide table":       {"a.md", "| " + long + "|\n", true},
		"a wide link":        {"a.md", "[a](b) " + long + "\n", true},
		"code in Markdown":   {"a.md", "```sh\n" + long + " anew\n```\n", true},
	} {
		if ok := check(prose(c.file, c.source)); ok != c.ok {
			t.Errorf("%s: ok is %v", name, ok)
		}
	}
}
