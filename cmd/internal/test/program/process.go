//go:build unix

package program

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Process is a program in a process of its own.
type Process struct {
	*testing.T
	Cmd       *exec.Cmd
	Out, Errs guardtest.Output
}

// Command returns a process that has not begun. Its program is the file at the path, or the test
// binary as the program that it tests.
func Command(t *testing.T, path string, args ...string) *Process {
	t.Helper()
	p := &Process{T: t, Cmd: exec.Command(path, args...)}
	p.Cmd.Env = append(p.Cmd.Environ(), Env, guardtest.AtOnce)
	p.Cmd.Stdout, p.Cmd.Stderr = &p.Out, &p.Errs
	return p
}

// Start starts the process. It is killed when the test ends.
func (p *Process) Start() *Process {
	p.Helper()
	must.OK(p, p.Cmd.Start())
	p.Cleanup(func() { _ = p.Cmd.Process.Kill() })
	return p
}

// Signal sends one to the process.
func (p *Process) Signal(s syscall.Signal) {
	p.Helper()
	must.OK(p, p.Cmd.Process.Signal(s))
}

// Stops asks the process to end, and checks the exit code.
func (p *Process) Stops(code int) {
	p.Helper()
	p.Signal(syscall.SIGTERM)
	p.Ends(code)
}

// Says waits for a text on its standard error or on its standard output, which its command has too.
func (p *Process) Says(text string) {
	p.Helper()
	wait.Succeeds(p.T, "it says "+text, func(context.Context) error {
		if said := p.Errs.String() + p.Out.String(); !strings.Contains(said, text) {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
}

// Ends waits until it has ended, and checks the exit code. Its standard error contains no password.
func (p *Process) Ends(code int) {
	p.Helper()
	stop := context.AfterFunc(wait.Context(p.T), func() { _ = p.Cmd.Process.Kill() })
	_ = p.Cmd.Wait()
	if !stop() {
		p.Errorf("it does not end")
	}
	if got := p.Cmd.ProcessState; got.ExitCode() != code {
		p.Errorf("%v, want exit code %d; it says\n%s", got, code, &p.Errs)
	}
	if strings.Contains(p.Errs.String(), "s3cret") {
		p.Errorf("it shows the password:\n%s", &p.Errs)
	}
}

// Result is the outcome of a command line.
type Result struct {
	Code      int
	Out, Errs string
}

// Run runs the process to its end.
func (p *Process) Run() Result {
	p.Helper()
	return p.Start().Result()
}

// Result waits until the process has ended, and returns the outcome.
func (p *Process) Result() Result {
	p.Helper()
	_ = p.Cmd.Wait()
	return Result{p.Cmd.ProcessState.ExitCode(), p.Out.String(), p.Errs.String()}
}

// Must checks the exit code, and that the output contains these texts, and no password.
func (r Result) Must(t *testing.T, code int, wants ...string) {
	t.Helper()
	all := r.Out + "\n---\n" + r.Errs
	if r.Code != code {
		t.Errorf("exit code %d, want %d:\n%s", r.Code, code, all)
	}
	for _, want := range wants {
		if !regexp.MustCompile("(?m)" + want).MatchString(all) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if strings.Contains(all, "s3cret") {
		t.Errorf("it shows the password:\n%s", all)
	}
}

// Get returns the answer of a server.
func Get(ctx context.Context, url string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// Answers waits until a server answers as wanted, and returns the answer.
func Answers(t *testing.T, url string, code int, is func(text string) bool) (text string) {
	t.Helper()
	wait.Succeeds(t, url, func(ctx context.Context) error {
		got, said, err := Get(ctx, url)
		if text = said; err == nil && (got != code || !is(text)) {
			err = fmt.Errorf("it answers %d: %s", got, text)
		}
		return err
	})
	return text
}

// Has returns a check for Answers.
func Has(part string) func(text string) bool {
	return func(text string) bool { return strings.Contains(text, part) }
}
