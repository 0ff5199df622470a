//go:build unix

package process

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

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
