//go:build integration

package recipes

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "deploy/docker/compose.yaml"

// workers returns the service of the file that runs tenure, checked by the schema of Compose.
func workers(t *testing.T) types.ServiceConfig {
	t.Helper()
	name := filepath.Join(root, composeFile)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  filepath.Dir(name),
		ConfigFiles: []types.ConfigFile{{Filename: name}},
	}, func(o *loader.Options) { o.SetProjectName("tenure", true) })
	if err != nil {
		t.Fatal(err)
	}
	s, err := project.GetService("worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// composed returns the file as a recipe, with the entrypoint of the image that it builds.
func composed(t *testing.T) recipe {
	t.Helper()
	s := workers(t)
	i := build(t)
	r := recipe{name: composeFile, args: slices.Concat(i.last().entrypoint(t)[1:], []string{"/program"}), env: map[string]string{}}
	for name, value := range s.Environment {
		r.env[name] = *value
	}
	if s.StopGracePeriod != nil {
		r.stop = time.Duration(*s.StopGracePeriod)
	}
	return r
}

func TestComposeBuildsTheDockerfile(t *testing.T) {
	b := workers(t).Build
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if context, err := filepath.Abs(b.Context); err != nil || context != here || b.Dockerfile != dockerFile {
		t.Errorf("builds %s in %s (%v)", b.Dockerfile, context, err)
	}
}
