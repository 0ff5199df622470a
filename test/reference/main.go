// Command reference writes the parts of the reference pages that come from doc comments and from
// the help of the command. Such a part is between two marks, and this program replaces it:
//
//	<!-- made: fields internal/record Wire -->
//	<!-- end -->
//
// The first mark names a maker, below, and its arguments. Run it at the top of the tree, as
// `go run ./test/reference`. The test of this package fails if a page is not up to date.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// pages are the pages with made parts.
var pages = []string{"docs/packages.md", "docs/events.md", "docs/configuration.md", "docs/record.md", "docs/command.md", "docs/versions.md"}

var part = regexp.MustCompile(`(?s)(<!-- made: ([^>]+) -->\n)(.*?)(<!-- end -->\n)`)

// makers return the text of a part. Directories are relative to the top of the tree.
var makers = map[string]func(args []string) (string, error){
	"packages": packages, // PATTERN: the released packages whose paths in the module match it
	"doc":      docOf,    // DIR NAME or DIR TYPE.FIELD: the prose of its comment
	"words":    words,    // DIR TYPE: the constants of a type, or its JSON fields
	"reasons":  reasons,  // DIR FUNC: the table in its comment, and what the errors in it mean
	"config":   config,   // DIR TYPE: the fields of a type, with the table in its comment
	"help":     help,     // COMMAND...: the help of each command
	"servers":  tested,   // the servers that tests run
}

func main() {
	for _, page := range pages {
		_, made, err := render(page)
		if err == nil {
			err = os.WriteFile(page, []byte(made), 0o666)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}
}

// render returns a page as it is, and as it should be.
func render(page string) (old, made string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", "", err
	}
	n := 0
	made = part.ReplaceAllStringFunc(string(text), func(whole string) string {
		n++
		m := part.FindStringSubmatch(whole)
		args := strings.Fields(m[2])
		maker := makers[args[0]]
		if maker == nil {
			err = fmt.Errorf("%s: no maker is called %s", page, args[0])
			return whole
		}
		body, failed := maker(args[1:])
		if failed != nil {
			err = fmt.Errorf("%s: %s: %w", page, m[2], failed)
		}
		return m[1] + "\n" + strings.TrimSpace(body) + "\n\n" + m[4]
	})
	if want := strings.Count(string(text), "<!-- made:"); err == nil && (n == 0 || n != want) {
		err = fmt.Errorf("%s has %d parts, %d of them with both marks", page, want, n)
	}
	return string(text), made, err
}
