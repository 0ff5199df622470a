//go:build integration

package recipes

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// A claim of the guide is held by rows of the battery: those that it names must be there, and all
// but the longest be named.
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
			t.Errorf("nothing is said of row %s", name)
		}
	}
}
