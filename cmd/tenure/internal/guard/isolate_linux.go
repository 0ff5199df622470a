package guard

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Isolate makes a guard run each command in a PID namespace of its own, which ends with the guard.
// Call it before Start, which returns an error if the system refuses such a namespace. Without the
// capability CAP_SYS_ADMIN, the guard and its commands are also in a user namespace.
func Isolate(command *exec.Cmd) {
	m := asRoot
	if !administers() {
		m = asUser
		uid, gid := os.Geteuid(), os.Getegid()
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		}
	}
	command.Args = append(command.Args, string(m))
}

// administers reports whether this process has CAP_SYS_ADMIN.
func administers() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// Uncovered returns the processes of a command that may outlive tenure, as a sentence, or an empty
// text if there are none. The first process of a container ends with all others. Systemd sets
// SYSTEMD_EXEC_PID for the first process of a unit, and kills the others of the unit when it ends.
func Uncovered(isolated bool) string {
	self := os.Getpid()
	if isolated || self == 1 || os.Getenv("SYSTEMD_EXEC_PID") == strconv.Itoa(self) {
		return ""
	}
	return "processes that leave the command's process group are not ended if tenure and its guard are killed together: --pid-namespace ends them too"
}
