//go:build integration

package recipes

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// outDir is the output directory of the Dockerfile's build.
const outDir = "/out/"

// carryOut runs a stage of the Dockerfile here instead of in an image. Its commands run at the top
// of the repository, and files for /out go to a directory of the test.
func carryOut(t *testing.T, s stage, out string) {
	t.Helper()
	env := os.Environ()
	for _, c := range s.Commands {
		switch c := c.(type) {
		case *instructions.EnvCommand:
			for _, v := range c.Env {
				env = append(env, v.Key+"="+v.Value)
			}
		case *instructions.RunCommand:
			line := strings.ReplaceAll(strings.Join(c.CmdLine, " "), outDir, out+"/")
			sh := exec.Command("sh", "-ec", line)
			sh.Dir, sh.Env = root, env
			if said, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, said)
			}
		}
	}
}

// fill puts the files that a stage copies from another one into a directory.
func fill(t *testing.T, s stage, out, dir string) {
	t.Helper()
	each(s, func(c *instructions.CopyCommand) {
		for _, from := range c.SourcePaths {
			to := filepath.Join(dir, c.DestPath)
			if strings.HasSuffix(c.DestPath, "/") {
				to = filepath.Join(to, filepath.Base(from))
			}
			content, err := os.ReadFile(strings.Replace(from, outDir, out+"/", 1))
			if os.IsNotExist(err) && !strings.HasPrefix(from, outDir) {
				continue // the system of this machine is not that of the image
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// unpacked returns a directory with the content of tenure's image, a worker, and a place for /proc.
func unpacked(t *testing.T) string {
	t.Helper()
	i, out, dir := build(t), t.TempDir(), t.TempDir()
	carryOut(t, i.named(t, "build"), out)
	fill(t, i.named(t, "tenure"), out, dir)
	c := exec.Command("go", "build", "-o", filepath.Join(dir, "worker"), "./worker")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if err := os.Mkdir(filepath.Join(dir, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// static checks that a binary needs no shared libraries.
func static(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static: it has %v", path, p.Type)
		}
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" && s.Value != "0" {
			t.Errorf("%s: CGO_ENABLED=%s", path, s.Value)
		}
	}
}

func TestImageBuiltByTheDockerfileRunsAsProcessOne(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes where nothing has been built")
	}
	dir := unpacked(t)
	static(t, filepath.Join(dir, "tenure"))
	image := build(t).last()
	user, _, _ := strings.Cut(image.user(), ":")
	env := []string{"TENURE_STORE=" + nats(t) + "/ELECTIONS?pristine=true", "TENURE_CREATE=true", "TENURE_ELECTION=worker", "TENURE_LEASE=30s"}
	run := func() *container { return contain(t, dir, user, env, append(image.entrypoint(t), "/worker")...) }

	one := run()
	first := number(t, one.await("token "))
	one.settle()
	two := run()
	one.stop(7)
	if second := number(t, two.await("token ")); second <= first {
		t.Errorf("token %d after %d", second, first)
	}
	two.stop(7)
}
