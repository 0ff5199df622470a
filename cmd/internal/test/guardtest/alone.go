//go:build unix

package guardtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
	"golang.org/x/sys/unix"
)

// aloneEnv names the test that a process is for, dirEnv a directory that it shares with the process
// that started it.
const (
	aloneEnv = "TEST_OF_TENURE_ALONE"
	dirEnv   = "TEST_OF_TENURE_DIR"
)

// Alone runs a test in a process of its own, which has no children but those of the test. The test
// must leave nothing behind: no process, no goroutine of these packages. The process inherits files
// under the numbers from 3.
func Alone(t *testing.T, body func(t *testing.T), files ...*os.File) {
	t.Helper()
	Apart(t, body, func(p *Process) { p.Passes() }, files...)
}

// Apart is Alone for tests with a second part. The second part runs outside of the process, and may
// stop or kill it.
func Apart(t *testing.T, inside func(t *testing.T), outside func(p *Process), files ...*os.File) {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		t.Cleanup(func() { nothingRuns(t) })
		inside(t)
		return
	}
	t.Parallel()
	outside(begin(t, files))
}

// AtOnce is for the environment of processes that must end without delay: otherwise the race
// detector takes a second more.
const AtOnce = "GORACE=atexit_sleep_ms=0"

// Dir is a directory that both parts of a test see.
func Dir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(dirEnv); dir != "" {
		return dir
	}
	t.Fatal("there is a directory only for tests in a process of their own")
	return ""
}

// Process is the process of a test, seen from outside.
type Process struct {
	*testing.T
	Cmd *exec.Cmd
	Dir string

	out    bytes.Buffer
	closed chan struct{} // closed when no process can write any more
}

func begin(t *testing.T, files []*os.File) *Process {
	t.Helper()
	r, w, err := os.Pipe()
	must.OK(t, err)
	p := &Process{T: t, Dir: t.TempDir(), closed: make(chan struct{})}
	limit := wait.Left().String() // it reports before this test gives up
	p.Cmd = exec.Command(Self(), "-test.run="+exactly(t.Name()), "-test.timeout="+limit)
	if testing.Short() {
		p.Cmd.Args = append(p.Cmd.Args, "-test.short")
	}
	p.Cmd.Env = append(os.Environ(), AtOnce, aloneEnv+"="+t.Name(), dirEnv+"="+p.Dir)
	p.Cmd.ExtraFiles = files
	p.Cmd.Stdout, p.Cmd.Stderr = w, w
	err = p.Cmd.Start()
	_ = w.Close()
	must.OK(t, err)
	go func() {
		defer close(p.closed)
		_, _ = io.Copy(&p.out, r)
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		_ = p.Cmd.Wait()
		_ = r.Close()
	})
	return p
}

// ends waits until the process and all its descendants have ended: they hold its output.
func (p *Process) ends() error {
	p.Helper()
	err := p.Cmd.Wait()
	select {
	case <-p.closed:
	case <-wait.Context(p.T).Done():
		p.Fatal("something runs on")
	}
	return err
}

// exactly returns the value of -test.run that matches one test.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// Passes waits until the part inside has passed, and none of its descendants runs.
func (p *Process) Passes() {
	p.Helper()
	if err := p.ends(); err != nil {
		p.Errorf("in a process of its own: %v\n%s", err, &p.out)
	}
}

// Exits waits in the same way until the part inside has exited with a code.
func (p *Process) Exits(code int) {
	p.Helper()
	_ = p.ends()
	if got := p.Cmd.ProcessState; got.ExitCode() != code {
		p.Errorf("%v, want exit code %d\n%s", got, code, &p.out)
	}
}

// Signal sends one to the process.
func (p *Process) Signal(s syscall.Signal) {
	p.Helper()
	must.OK(p, p.Cmd.Process.Signal(s))
}

// Killed kills the process and waits until none of its descendants runs either.
func (p *Process) Killed() {
	p.Helper()
	p.Signal(syscall.SIGKILL)
	_ = p.ends()
}

// nothingRuns checks at the end of a test that it has left no process and no goroutine.
func nothingRuns(t *testing.T) {
	t.Helper()
	if t.Failed() || t.Skipped() { // in the middle of it
		return
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("there are children: %d %v", pid, err)
	}
	wait.Succeeds(t, "the end of all goroutines", func(context.Context) error {
		if all := goroutines(); ours.MatchString(all) {
			return errors.New(all)
		}
		return nil
	})
}

// ours are goroutines in a method of the packages under test.
var ours = regexp.MustCompile(`/cmd/tenure/internal/(guard|wrap)\.\(\*`)

func goroutines() string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	return all.String()
}
