//go:build unix

package terminaltest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
	"golang.org/x/term"
)

// Window is a terminal in which a program runs.
type Window struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	before *term.State
	closed chan struct{} // closed when no process can write to it any more

	output guardtest.Output
}

// Open starts a program in a new terminal of the given size, which is its standard input, output
// and error. The program is killed when the test ends.
func Open(t *testing.T, cmd *exec.Cmd, columns, lines uint16) *Window {
	t.Helper()
	master, slave, err := pty.Open()
	must.OK(t, err)
	w := &Window{t: t, cmd: cmd, master: master, closed: make(chan struct{})}
	w.Resize(columns, lines)
	w.before = w.state()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(t, cmd.Start())
	go w.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		_, _ = slave.Close(), master.Close()
		<-w.closed
	})
	return w
}

func (w *Window) read() {
	defer close(w.closed)
	_, _ = io.Copy(&w.output, w.master)
}

// Output returns all that was written so far.
func (w *Window) Output() string { return w.output.String() }

// Await waits until the output holds a text after its first bytes, and returns the output before it
// and after it.
func (w *Window) Await(from int, text string) (before, after string) {
	w.t.Helper()
	wait.Succeeds(w.t, fmt.Sprintf("%q is written", text), func(context.Context) error {
		written := w.Output()[from:]
		var found bool
		if before, after, found = strings.Cut(written, text); !found {
			return fmt.Errorf("written is:\n%q", written)
		}
		return nil
	})
	return before, after
}

// Press types keys.
func (w *Window) Press(keys string) {
	w.t.Helper()
	if _, err := w.master.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

// Resize changes the size of the terminal, as a user does with the mouse.
func (w *Window) Resize(columns, lines uint16) {
	w.t.Helper()
	must.OK(w.t, pty.Setsize(w.master, &pty.Winsize{Cols: columns, Rows: lines}))
}

// Restored waits until the program has written its last words and has ended. The last words come
// after it has given back the terminal. It checks that all settings of the terminal were undone,
// and returns the output after that, and the exit code.
func (w *Window) Restored(lastWords string) (after string, code int) {
	w.t.Helper()
	before, _ := w.Await(0, lastWords)
	for _, mode := range []struct{ what, on, off string }{
		{"paste", "\x1b[?2004h", "\x1b[?2004l"},
		{"the cursor", "\x1b[?25l", "\x1b[?25h"},
		{"the other screen", "\x1b[?1049h", "\x1b[?1049l"},
	} {
		on, off := strings.LastIndex(before, mode.on), strings.LastIndex(before, mode.off)
		if on < 0 || off < on {
			w.t.Errorf("%s: set at %d, undone at %d, in:\n%q", mode.what, on, off, before)
			continue
		}
		after = w.Output()[off+len(mode.off):]
	}
	_ = w.cmd.Wait()
	if now := w.state(); !reflect.DeepEqual(now, w.before) {
		w.t.Errorf("the terminal was %+v, and is %+v", w.before, now)
	}
	return after, w.cmd.ProcessState.ExitCode()
}

// state returns the settings of the terminal, such as the echo.
func (w *Window) state() *term.State {
	w.t.Helper()
	s, err := term.GetState(int(w.master.Fd()))
	must.OK(w.t, err)
	return s
}
