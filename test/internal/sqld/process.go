// Package sqld runs database servers for tests, on 127.0.0.1: PostgreSQL with a streaming standby,
// PgBouncer, and MariaDB. They have the settings of the Debian packages, unless a test gives
// others. The servers end with the process that started them.
package sqld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// process is one server process, which can be started again on its files and port.
type process struct {
	command []string
	dir     string // with the file of its output
	user    string // the user of the server if this process is root
	port    int
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

func (p *process) log() string { return filepath.Join(p.dir, filepath.Base(p.command[0])+".log") }

// settle gives the process a port and a directory that its user owns, and then calls begin. Only
// the user of the test can read the directories of package testing.
func (p *process) settle(user string, begin func(dir string) error) (err error) {
	found, err := ports.Free(1)
	if err != nil {
		return err
	}
	p.user, p.port = user, found[0]
	if p.dir, err = os.MkdirTemp("", "sqld-"); err != nil {
		return err
	}
	if err := os.Chmod(p.dir, 0o755); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		uid, gid, err := ids(user)
		if err == nil {
			err = os.Chown(p.dir, uid, gid)
		}
		if err != nil {
			return err
		}
	}
	return begin(p.dir)
}

// give copies a file into the directory of the server, which can read it there. It returns the
// path.
func (p *process) give(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	given := filepath.Join(p.dir, filepath.Base(file))
	if err := os.WriteFile(given, text, 0o600); err != nil || os.Getuid() != 0 {
		return given, err
	}
	uid, gid, err := ids(p.user)
	if err != nil {
		return "", err
	}
	return given, os.Chown(given, uid, gid)
}

// encrypt adds settings to the command, each with the file of an authority, a certificate or a key.
func (p *process) encrypt(t testing.TB, settings map[string]string) {
	t.Helper()
	for setting, file := range settings {
		given, err := p.give(file)
		must(t, err)
		p.command = append(p.command, setting+given)
	}
}

// remove removes the files.
func (p *process) remove() { _ = os.RemoveAll(p.dir) }

// Address is where the server listens.
func (p *process) Address() string { return ports.Address(p.port) }

// over reports whether the process has ended or was never started.
func (p *process) over() bool {
	if p.cmd == nil {
		return true
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// start starts the process and waits until it answers.
func (p *process) start(ctx context.Context, answers func(context.Context) error) error {
	if err := p.begin(); err != nil {
		return err
	}
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return p.fault("ended instead of answering")
		case <-ctx.Done():
			return p.fault(fmt.Sprintf("does not answer (%v)", err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// begin starts the process.
func (p *process) begin() error {
	out, err := os.OpenFile(p.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own descriptor
	if p.cmd, err = p.prepared(p.command...); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	machine.Together(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd)
	return nil
}

// prepared returns a command that runs in the directory of the process, as its user.
func (p *process) prepared(command ...string) (*exec.Cmd, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = p.dir
	if os.Getuid() != 0 {
		return cmd, nil
	}
	uid, gid, err := ids(p.user)
	if err == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	return cmd, err
}

// run runs a command to its end, as the user of the process.
func (p *process) run(command ...string) error {
	cmd, err := p.prepared(command...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// output runs a command as run does, and returns what it prints.
func (p *process) output(t testing.TB, command ...string) []byte {
	t.Helper()
	cmd, err := p.prepared(command...)
	must(t, err)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, failure.Bytes())
	}
	return out
}

// fault returns an error with the end of the log of the process.
func (p *process) fault(what string) error {
	said, _ := os.ReadFile(p.log())
	return fmt.Errorf("%s %s: %s", filepath.Base(p.command[0]), what, said[max(0, len(said)-2000):])
}

// signal sends a signal only to the process, not to its children. If ends is set, signal waits
// until the process has ended.
func (p *process) signal(sig syscall.Signal, ends bool) error {
	if p.over() {
		return nil
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if ends {
		<-p.ended
	}
	return nil
}

// all sends a signal to the process and its children.
func (p *process) all(sig syscall.Signal) error {
	pids := append([]int{p.cmd.Process.Pid}, children(p.cmd.Process.Pid)...)
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// children returns the processes that a process has started.
func children(of int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), ") ") // the name in front may have spaces
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(of) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// lives reports whether a process has not ended. A zombie has ended.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func ids(of string) (uid, gid int, err error) {
	u, err := user.Lookup(of)
	if err != nil {
		return 0, 0, err
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}
