//go:build integration

package recipes

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const dockerFile = "deploy/docker/Dockerfile"

// image is a Dockerfile as buildkit reads it.
type image []instructions.Stage

// stage is one of its stages.
type stage struct{ instructions.Stage }

func build(t *testing.T) image {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(text(t, dockerFile)))
	must(t, err)
	stages, _, err := instructions.Parse(parsed.AST, nil)
	must(t, err)
	for _, w := range parsed.Warnings {
		t.Errorf("%s: %s", dockerFile, w.Short)
	}
	return stages
}

func (i image) named(t *testing.T, name string) stage {
	t.Helper()
	n, ok := instructions.HasStage(i, name)
	if !ok {
		t.Fatalf("no stage %s", name)
	}
	return stage{i[n]}
}

func (i image) last() stage { return stage{i[len(i)-1]} }

// each calls see with the instructions of one type.
func each[T instructions.Command](s stage, see func(T)) {
	for _, c := range s.Commands {
		if c, ok := c.(T); ok {
			see(c)
		}
	}
}

// entrypoint returns the last entrypoint, as a list.
func (s stage) entrypoint(t *testing.T) []string {
	t.Helper()
	var words []string
	each(s, func(c *instructions.EntrypointCommand) {
		if c.PrependShell {
			t.Errorf("%v: a shell would be process 1", c)
		}
		words = c.CmdLine
	})
	return words
}

// user returns the last user.
func (s stage) user() string {
	user := ""
	each(s, func(c *instructions.UserCommand) { user = c.User })
	return user
}

func TestImageRunsTenureAsProcessOneAndNotAsRoot(t *testing.T) {
	i := build(t)
	for _, s := range []stage{i.named(t, "tenure"), i.last()} {
		if entry := s.entrypoint(t); len(entry) == 0 || path.Base(entry[0]) != "tenure" {
			t.Errorf("process 1 is %v", entry)
		}
		if user := s.user(); strings.Trim(user, "0123456789:") != "" || user == "" || strings.HasPrefix(user, "0") {
			t.Errorf("runs as %q", user)
		}
	}
	entry := i.last().entrypoint(t)
	if entry[len(entry)-1] != "--" {
		t.Errorf("%v takes a program's own flags for tenure's", entry)
	}
}

func TestTenureImageContainsOnlyTenure(t *testing.T) {
	s := build(t).named(t, "tenure")
	if s.BaseName != "scratch" {
		t.Errorf("from %s", s.BaseName)
	}
	each(s, func(c *instructions.RunCommand) { t.Errorf("there is nothing that could run %v", c) })
}

const composeFile = "deploy/docker/compose.yaml"

// workers returns the service of the file that runs tenure, checked by the schema of Compose.
func workers(t *testing.T) types.ServiceConfig {
	t.Helper()
	name := filepath.Join(root, composeFile)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  filepath.Dir(name),
		ConfigFiles: []types.ConfigFile{{Filename: name}},
	}, func(o *loader.Options) { o.SetProjectName("tenure", true) })
	must(t, err)
	s, err := project.GetService("worker")
	must(t, err)
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
	must(t, err)
	if context, err := filepath.Abs(b.Context); err != nil || context != here || b.Dockerfile != dockerFile {
		t.Errorf("builds %s in %s (%v)", b.Dockerfile, context, err)
	}
}
