//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func pause(pid int) error   { return syscall.Kill(pid, syscall.SIGSTOP) }
func resume(pid int) error  { return syscall.Kill(pid, syscall.SIGCONT) }
func isGone(err error) bool { return errors.Is(err, syscall.ESRCH) }

// has reports whether the process runs and has this text on its command line. The number alone is
// not enough, because the system reuses it. Systems without /proc do not show the command line.
func has(pid int, mark string) bool {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(args), mark)
}

// killFamily ends a process and its children. It returns when all are gone: the next start of
// PostgreSQL refuses while one of them still uses the shared memory.
func (p *Process) killFamily(pid int) error {
	// A stopped server starts no more processes, so the list below is complete.
	if err := pause(pid); err != nil && !isGone(err) {
		return err
	}
	all := append([]int{pid}, children(pid)...)
	for _, one := range all {
		if err := syscall.Kill(one, syscall.SIGKILL); err != nil && !isGone(err) {
			return err
		}
	}
	if err := p.gone(); err != nil {
		return err
	}
	for _, one := range all {
		for lives(one) {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// children returns the processes that a process has started.
func children(of int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		if fields := state(file); len(fields) > 1 && fields[1] == strconv.Itoa(of) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// lives reports whether a process has not ended. A zombie has ended.
func lives(pid int) bool {
	fields := state(fmt.Sprintf("/proc/%d/stat", pid))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// state returns the fields of a file that describes a process: first its state, then its parent.
func state(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name in front may have spaces
	return strings.Fields(after)
}

// As makes a command run as a user, if this process is root.
func As(cmd *exec.Cmd, name string) error {
	uid, gid, err := IDs(name)
	if err != nil || uid < 0 {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

// IDs returns the numbers of a user and its group, or -1 if this process need not change to that
// user.
func IDs(name string) (uid, gid int, err error) {
	if name == "" || os.Getuid() != 0 {
		return -1, -1, nil
	}
	u, err := user.Lookup(name)
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
