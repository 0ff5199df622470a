//go:build integration

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDebian: the servers of Debian 12 on this machine have the versions that the page names.
func TestDebian(t *testing.T) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !strings.Contains(string(release), `VERSION_ID="12"`) {
		t.Skip("the page names the versions of Debian 12")
	}
	for _, s := range servers {
		if s.program == nil {
			continue
		}
		if _, err := exec.LookPath(s.program[0]); err != nil {
			t.Logf("%s is not installed", s.program[0])
			continue
		}
		said, err := exec.Command(s.program[0], s.program[1:]...).CombinedOutput()
		if found := regexp.MustCompile(`\d+\.\d+[.\d]*`).FindString(string(said)); err != nil || !strings.HasPrefix(found+".", s.version+".") {
			t.Errorf("%s has version %q, not %s: %v", s.name, found, s.version, err)
		}
	}
}
