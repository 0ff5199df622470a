package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	core = "github.com/tenure-go/tenure"
	// demo is the released module that contains servers.
	demo = "cmd/tenure-demo"
)

var (
	required = regexp.MustCompile(`(?m)^(?:require )?\t?(\S+\.\S+/\S+) v\S+(?: // indirect)?$`)
	// testServers are servers that are libraries. A user of a module gets at least the release of a
	// library that the module requires, even if only its tests need it.
	testServers = regexp.MustCompile(`^github\.com/(nats-io/nats-server(/v2)?|johannesboyne/gofakes3|twmb/franz-go/pkg/kfake)$`)
)

// TestReleasedModulesRequireNoServer: neither the code nor the tests of a released module require a
// server. They also require no module of the project that is not released.
func TestReleasedModulesRequireNoServer(t *testing.T) {
	out, err := exec.Command(filepath.Join(root, ".ci", "released")).Output()
	if err != nil {
		t.Fatal(err)
	}
	released := strings.Fields(string(out))
	if len(released) < 9 || !slices.Contains(released, demo) || slices.Contains(released, "test") {
		t.Errorf("the released modules are %q", released)
	}
	for _, dir := range released {
		mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, why := range unfit(string(mod), released, dir == demo) {
			t.Errorf("%s/go.mod requires %s", dir, why)
		}
	}
}

// TestRequiredServersAreFound shows that TestReleasedModulesRequireNoServer can fail.
func TestRequiredServersAreFound(t *testing.T) {
	const mod = "module x\n\nrequire github.com/twmb/franz-go/pkg/kfake v0.1.0\n\nrequire (\n" +
		"\tgithub.com/nats-io/nats-server/v2 v2.15.2 // indirect\n" +
		"\tgithub.com/nats-io/nats.go v1.55.0\n\t" + core + " v0.0.0\n\t" + core + "/driver/natskv v0.0.0\n\t" +
		core + "/driver/natskv/natstest v0.0.0\n)\n"
	want := []string{"github.com/twmb/franz-go/pkg/kfake", "github.com/nats-io/nats-server/v2", core + "/driver/natskv/natstest"}
	if got := unfit(mod, []string{".", "driver/natskv"}, false); !slices.Equal(got, want) {
		t.Errorf("found %q; want %q", got, want)
	}
}

// unfit returns the modules that a released module may not require.
func unfit(mod string, released []string, hasServers bool) (all []string) {
	for _, m := range required.FindAllStringSubmatch(mod, -1) {
		dir, ours := strings.CutPrefix(m[1], core)
		dir = path.Clean(strings.TrimPrefix(dir, "/"))
		if testServers.MatchString(m[1]) && !hasServers || ours && !slices.Contains(released, dir) {
			all = append(all, m[1])
		}
	}
	return all
}
