package main

import (
	"os"
	"strconv"
	"syscall"
)

// closeInherited closes all inherited files except the standard ones. They have no close-on-exec
// flag. The files that this process has opened itself have that flag.
func closeInherited() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0); errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}
