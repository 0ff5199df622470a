package main

import (
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// root is the top of the tree.
const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	inline  = regexp.MustCompile("`[^`]*`")
	named   = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.(?:md|txt|svg)\b`)
)

// TestLinksResolve checks each relative link and each anchor in all Markdown files.
func TestLinksResolve(t *testing.T) {
	pages := files(t, ".md")
	if len(pages) < 20 {
		t.Fatalf("only %d Markdown files were found", len(pages))
	}
	anchors := map[string][]string{}
	for name, text := range pages {
		anchors[name] = anchorsOf(text)
	}
	for name, text := range pages {
		for _, target := range linksOf(text) {
			if why := broken(name, target, anchors); why != "" {
				t.Errorf("%s: the link to %s: %s", name, target, why)
			}
		}
	}
}

// broken returns the fault of a link in a page, if the link stays within the tree.
func broken(page, target string, anchors map[string][]string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "" || u.Host != "":
		return ""
	}
	file := page
	if u.Path != "" {
		file = path.Join(path.Dir(page), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		return "there is no such file"
	}
	if u.Fragment != "" && !slices.Contains(anchors[file], u.Fragment) {
		return "no heading of " + file + " has this anchor"
	}
	return ""
}

// TestBrokenLinksAreFound shows that TestLinksResolve can fail.
func TestBrokenLinksAreFound(t *testing.T) {
	const text = "# A `b` & [c](d.md)\n## Twice\n## Twice\n" +
		"```\n# no heading\n[no link](none.md)\n```\n" +
		"`[code](none.md)` [page](README.md#none) [here](#a-b--c) [there](#twice-1)\n" +
		"[lost](none.md) [web](https://example.org/x)\n"
	const page = "CONTRIBUTING.md" // a file that exists; the test uses another text
	anchors := map[string][]string{page: anchorsOf(text), "README.md": {"tenure"}}
	var found []string
	for _, target := range linksOf(text) {
		if broken(page, target, anchors) != "" {
			found = append(found, target)
		}
	}
	if want := []string{"d.md", "README.md#none", "none.md"}; !slices.Equal(found, want) {
		t.Errorf("found %v broken, want %v; the anchors are %v", found, want, anchors[page])
	}
}

// TestEveryPageIsInTheIndex: the index of docs lists each page once, and so does the index of
// docs/adr.
func TestEveryPageIsInTheIndex(t *testing.T) {
	pages := files(t, ".md")
	const index, decisions = "docs/README.md", "docs/adr/README.md"
	listed := map[string]int{index: 1}
	for _, list := range []string{index, decisions} {
		for _, target := range linksOf(pages[list]) {
			listed[path.Join(path.Dir(list), target)]++
		}
	}
	for name := range pages {
		if n := listed[name]; strings.HasPrefix(name, "docs/") && n != 1 {
			t.Errorf("%s is listed %d times in %s or %s", name, n, index, decisions)
		}
	}
}

// TestNamedPagesExist checks the pages that code, comments and scripts name.
func TestNamedPagesExist(t *testing.T) {
	for name, text := range files(t, ".go", ".steps", "") {
		for _, page := range named.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s names %s, which does not exist", name, page)
			}
		}
	}
}

// files returns the texts of all files of the tree with one of these extensions, by name.
func files(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(base, ".") && base != "." && base != ".ci":
			return fs.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains(extensions, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		texts[name] = string(text)
		return err
	})
	must(t, err)
	return texts
}

// prose returns the lines of a page without its fenced blocks of code.
func prose(text string) []string {
	var lines []string
	fence := ""
	for line := range strings.Lines(text) {
		start := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(start, fence) {
				fence = ""
			}
		case strings.HasPrefix(start, "```"), strings.HasPrefix(start, "~~~"):
			fence = start[:3]
		default:
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

func linksOf(text string) []string {
	var targets []string
	for _, line := range prose(text) {
		for _, found := range link.FindAllStringSubmatch(inline.ReplaceAllString(line, "`"), -1) {
			targets = append(targets, found[1])
		}
	}
	return targets
}

// anchorsOf returns the anchors of a page's headings, as GitHub and mdBook create them.
func anchorsOf(text string) []string {
	seen := map[string]int{}
	for _, line := range prose(text) {
		found := heading.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linked.ReplaceAllString(found[1], "$1"))
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			seen[anchor+"-"+strconv.Itoa(n)]++
		}
	}
	return slices.Collect(maps.Keys(seen))
}
