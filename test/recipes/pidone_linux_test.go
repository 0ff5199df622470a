//go:build integration

package recipes

import (
	"bufio"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// rootVariable makes a process the process 1 of a container, with its files in this directory.
// userVariable is the user it becomes.
const (
	rootVariable = "TENURE_RECIPES_ROOT"
	userVariable = "TENURE_RECIPES_USER"
)

// enter does the last steps of a container's runtime: it mounts /proc, leaves all other files
// behind, drops root, and becomes the program, which is then process 1.
func enter(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	id, noUser := strconv.Atoi(os.Getenv(userVariable))
	if noUser == nil {
		if err := readOnly(dir); err != nil {
			return fmt.Errorf("read-only: %w", err)
		}
	}
	if err := syscall.Mount("proc", filepath.Join(dir, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := errors.Join(syscall.Chroot(dir), syscall.Chdir("/")); err != nil {
		return err
	}
	if noUser == nil {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id)); err != nil {
			return err
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return !strings.HasPrefix(v, "TENURE_") || strings.HasPrefix(v, rootVariable) || strings.HasPrefix(v, userVariable)
	})
	return syscall.Exec(os.Args[1], os.Args[1:], env)
}

// readOnly applies the manifest's readOnlyRootFilesystem.
func readOnly(dir string) error {
	return errors.Join(syscall.Mount(dir, dir, "", syscall.MS_BIND, ""), syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
}

// container is a process 1 with its output. It is killed at the time limit of the tests.
type container struct {
	*testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
}

// contain runs a command as process 1 in a directory, and shows it no other files.
func contain(t *testing.T, dir, user string, env []string, command ...string) *container {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.CommandContext(wait.Context(t), self, command...)
	c.Env = slices.Concat(os.Environ(), env, []string{rootVariable + "=" + dir})
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		c.Env = append(c.Env, userVariable+"="+user)
	} else { // a user may be root of its own files
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.StdoutPipe()
	must(t, err)
	errs := &strings.Builder{}
	c.Stderr = errs
	if err := c.Start(); err != nil {
		t.Fatalf("no process namespace can be had here: %v", err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		if t.Failed() {
			t.Logf("on standard error:\n%s", errs)
		}
	})
	return &container{t, c, bufio.NewScanner(io.TeeReader(out, t.Output()))}
}

// await reads until a line begins with this text, and returns the rest of the line.
func (c *container) await(begin string) string {
	c.Helper()
	for c.out.Scan() {
		if rest, ok := strings.CutPrefix(c.out.Text(), begin); ok {
			return rest
		}
	}
	c.Fatalf("no line begins with %q", begin)
	return ""
}

// settle waits until only tenure, its guard and the worker are left, and no zombie.
func (c *container) settle() {
	c.Helper()
	space := func(pid int) string { s, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); return s }
	own := space(c.cmd.Process.Pid)
	wait.Until(c.T, "the orphans to be reaped", func() bool {
		pids, err := machine.Processes()
		left := slices.DeleteFunc(pids, func(pid int) bool { return space(pid) != own })
		return err == nil && own != "" && len(left) == 3
	})
}

// stop sends SIGTERM, and expects the worker's own exit code.
func (c *container) stop(code int) {
	c.Helper()
	must(c, c.cmd.Process.Signal(syscall.SIGTERM))
	for c.out.Scan() {
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != code {
		c.Fatalf("ended with %v, want code %d", err, code)
	}
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	must(t, err)
	return n
}

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
			must(t, err)
			must(t, os.MkdirAll(filepath.Dir(to), 0o755))
			must(t, os.WriteFile(to, content, 0o755))
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
	must(t, os.Mkdir(filepath.Join(dir, "proc"), 0o755))
	return dir
}

// static checks that a binary needs no shared libraries.
func static(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	must(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static: it has %v", path, p.Type)
		}
	}
	info, err := buildinfo.ReadFile(path)
	must(t, err)
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
	env := []string{"TENURE_STORE=" + natsd.Alone(t).URL() + "/ELECTIONS?pristine=true", "TENURE_CREATE=true", "TENURE_ELECTION=worker", "TENURE_LEASE=30s"}
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
