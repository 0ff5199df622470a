// Command prose checks the words and the width of comments and Markdown, by the rules in
// CONTRIBUTING.md. It prints each line at fault, and fails if there is one, or if vague words are
// too many in all.
//
// It skips golden and generated files, and raw results. Tables, links, and code in Markdown may be
// wide.
package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

const (
	width = 100 // columns; a tab counts 4
	most  = 3   // vague words per 1,000
)

var (
	// banned words must be replaced by a plain word.
	banned = regexp.MustCompile(`(?i)\b(befall\w*|anew|thereby|whoever|whomever|in earnest|of whom|to whom|made anew)\b`)
	// vague words are sometimes right, and sometimes hide the subject of a sentence.
	vague   = regexp.MustCompile(`(?i)\b(who|whom|whose|what|whatever|nobody|somebody|anybody|meanwhile|rather|of which|is told|are told|for ever|say so|says so)\b`)
	exempt  = regexp.MustCompile(`/testdata/|^docs/results/|^docs/planted-bugs\.md$|^test/prose/`)
	mayWide = regexp.MustCompile(`^\||\]\(|^!\[|https?://|//nolint|//go:|^\s*//\t`)
)

// text is one line of prose, as it stands in its file.
type text struct {
	at    string // file:line
	words string // the prose in it
	line  string // the whole line
}

func main() {
	files, err := exec.Command("git", "ls-files", "*.go", "*.md").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "git ls-files:", err)
		os.Exit(1)
	}
	var all []text
	for _, file := range strings.Fields(string(files)) {
		if exempt.MatchString(file) {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		all = append(all, prose(file, string(source))...)
	}
	if !check(all) {
		os.Exit(1)
	}
}

// check prints the lines at fault, and the rate of vague words.
func check(all []text) (ok bool) {
	ok = true
	words, hits := 0, 0
	for _, t := range all {
		if found := banned.FindString(t.words); found != "" {
			fmt.Printf("%s: %q: say it in a plain word\n", t.at, found)
			ok = false
		}
		if columns(t.line) > width && !mayWide.MatchString(t.line) {
			fmt.Printf("%s: %d columns, more than %d\n", t.at, columns(t.line), width)
			ok = false
		}
		words += len(strings.Fields(t.words))
		hits += len(vague.FindAllString(t.words, -1))
	}
	rate := 1000 * float64(hits) / float64(max(words, 1))
	fmt.Printf("%d words, %.1f vague ones per 1,000 (at most %d)\n", words, rate, most)
	return ok && rate <= most
}

func columns(line string) int { return len([]rune(strings.ReplaceAll(line, "\t", "    "))) }

func prose(file, source string) []text {
	if strings.HasSuffix(file, ".md") {
		return markdown(file, source)
	}
	return comments(file, source)
}

// markdown returns the lines outside code.
func markdown(file, source string) (all []text) {
	code := false
	for i, line := range strings.Split(source, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case !code && !strings.HasPrefix(line, "    "):
			all = append(all, text{fmt.Sprintf("%s:%d", file, i+1), line, line})
		}
	}
	return all
}

// comments returns the lines of comments in Go source.
func comments(file, source string) (all []text) {
	lines := strings.Split(source, "\n")
	var s scanner.Scanner
	set := token.NewFileSet().AddFile(file, -1, len(source))
	s.Init(set, []byte(source), nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return all
		}
		if tok != token.COMMENT {
			continue
		}
		first := set.Line(pos)
		for i, words := range strings.Split(literal, "\n") {
			n := first + i
			all = append(all, text{fmt.Sprintf("%s:%d", file, n), words, lines[n-1]})
		}
	}
}
