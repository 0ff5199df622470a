//go:build integration

package recipes

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Rows of the battery support a claim of the guide. The rows that the guide names must exist. The
// guide must name all rows but the longest.
func TestGuideNamesTheRowsOfTheBattery(t *testing.T) {
	out, err := exec.Command("go", "run", "../battery", "-rows").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for l := range strings.Lines(string(out)) {
		if words := strings.Fields(l); len(words) > 0 {
			there[words[0]] = true
		}
	}
	named := map[string]bool{"random": true, "footprint": true}
	for _, cells := range rows(t, "| event |") {
		for _, name := range regexp.MustCompile("[a-z-]+").FindAllString(cells[len(cells)-1], -1) {
			named[name] = true
			if !there[name] {
				t.Errorf("the battery has no row %s", name)
			}
		}
	}
	for name := range there {
		if !named[name] {
			t.Errorf("the guide does not name row %s", name)
		}
	}
}
