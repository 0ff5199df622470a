package rigs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runs matches a command that runs the tests of all stores on some rigs, or on all but some.
var runs = regexp.MustCompile(`go test .* -(run|skip) '?/([^' ]+)'? \./test/stores\n`)

// TestEveryRigIsRun: the steps run each rig, those of .ci/run only rigs that are in the short pass.
// The page about tests names each rig.
func TestEveryRigIsRun(t *testing.T) {
	for _, file := range []string{"run", "soak"} {
		all := runs.FindAllStringSubmatch(read(t, ".ci/"+file+".steps"), -1)
		for _, r := range All() {
			is := func(m []string) bool { return regexp.MustCompile(m[2]).MatchString(r.Name) == (m[1] == "run") }
			if !slices.ContainsFunc(all, is) && (file == "soak" || !r.Soak) {
				t.Errorf("no step of .ci/%s runs %s", file, r.Name)
			}
		}
	}
	_, page, _ := strings.Cut(read(t, "docs/testing.md"), "\n| rigs | defined in |\n")
	table, _, _ := strings.Cut(page, "\n\n")
	for _, r := range All() {
		if !strings.Contains(table, "`"+r.Name+"`") {
			t.Errorf("the table of rigs in docs/testing.md lacks %s", r.Name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
