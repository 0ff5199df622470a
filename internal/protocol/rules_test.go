package protocol_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = "docs/protocol.md"
)

var (
	ruleName    = regexp.MustCompile(`\b[LH][1-9][0-9]?a?\b`)
	ruleHeading = regexp.MustCompile(`(?m)^### ([LH][0-9]+a?): `)
	// ruleRow has the functions of a rule, and then the test that shows it and its planted bug.
	ruleRow     = regexp.MustCompile(`(?m)^\| ([LH][0-9]+a?) \|(.*) \|(.*\|.*)\|$`)
	funcName    = regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)\(`)
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	testName    = regexp.MustCompile(`(?m)^func (Test\w+)`)
	plantedName = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|")
)

// Each rule that code or a timeline cites is defined on the page.
func TestCitedRulesAreDefined(t *testing.T) {
	defined := make(map[string]bool)
	for _, heading := range ruleHeading.FindAllStringSubmatch(text(t, page), -1) {
		defined[heading[1]] = true
	}
	if len(defined) < 18 {
		t.Fatalf("%s defines %d rules", page, len(defined))
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.Contains(path, "protocol/testdata/") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, rule := range ruleName.FindAllString(string(b), -1) {
			if !defined[rule] {
				t.Errorf("%s cites %s, which %s does not define", path, rule, page)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The timelines, tests and planted bugs that the page gives for a rule exist.
func TestRulesAreShown(t *testing.T) {
	there := make(map[string]bool)
	for _, name := range plantedName.FindAllStringSubmatch(text(t, "docs/planted-bugs.md"), -1) {
		there[name[1]] = true
	}
	timelines, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range timelines {
		there[strings.TrimSuffix(filepath.Base(name), ".txt")] = true
	}
	tests, err := filepath.Glob(root + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tests {
		for _, test := range testName.FindAllStringSubmatch(text(t, filepath.Base(name)), -1) {
			there[test[1]] = true
		}
	}
	for _, row := range ruleRow.FindAllStringSubmatch(text(t, page), -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(row[3], -1) {
			if !there[span[1]] {
				t.Errorf("%s: %s names %q, which is not there", page, row[1], span[1])
			}
		}
	}
}

// Each rule has functions on the page, and they exist.
func TestRulesNameTheirCode(t *testing.T) {
	there := map[string]bool{"clock": true}
	for _, dir := range []string{"internal/protocol", "clock", "."} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			for _, f := range funcName.FindAllStringSubmatch(text(t, filepath.Join(dir, filepath.Base(name))), -1) {
				there[f[1]] = true
			}
		}
	}
	named := make(map[string]bool)
	for _, row := range ruleRow.FindAllStringSubmatch(text(t, page), -1) {
		named[row[1]] = true
		for _, span := range codeSpan.FindAllStringSubmatch(row[2], -1) {
			if !there[span[1]] {
				t.Errorf("%s: the code of %s names %q, which is not there", page, row[1], span[1])
			}
		}
	}
	for _, heading := range ruleHeading.FindAllStringSubmatch(text(t, page), -1) {
		if !named[heading[1]] {
			t.Errorf("%s names no code of %s", page, heading[1])
		}
	}
}

// text returns the content of a file of the project.
func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
