package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDockerfile: the recipe builds the program as a release does, for the same user.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../deploy/docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	built := regexp.MustCompile(`go build (-tags \S+ -ldflags=\S+) `).FindStringSubmatch(string(text))
	want := strings.Replace(buildTags, "=", " ", 1) + " " + buildFlags[len(buildFlags)-1]
	if built == nil || built[1] != want {
		t.Errorf("it builds with %q, want %s", built, want)
	}
	if n := strings.Count(string(text), "USER "+user+"\n"); n != 2 {
		t.Errorf("%d of its images run as %s", n, user)
	}
}

func TestChoose(t *testing.T) {
	for only, want := range map[string]int{"": len(platforms), "linux_amd64": 1, "windows_arm64,linux_arm64": 2} {
		if got, err := choose(only); err != nil || len(got) != want {
			t.Errorf("%q chooses %v (%v)", only, got, err)
		}
	}
	for _, only := range []string{"plan9_amd64", "linux_amd64,"} {
		if got, err := choose(only); err == nil {
			t.Errorf("%q chooses %v", only, got)
		}
	}
}

func TestIsLicense(t *testing.T) {
	for file, want := range map[string]bool{
		"LICENSE": true, "License.md": true, "LICENCE.txt": true, "NOTICE": true, "COPYING": true, "LICENSE-go": true,
		"license.go": false, "licenses_test.go": false, "README.md": false, "notices.html": false,
	} {
		if got := isLicense(file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}
