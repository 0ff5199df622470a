package web

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser returns the user of the process at the other end, as the kernel noted it.
func peerUser(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var of *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		of, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if asked != nil {
		return 0, asked
	}
	return int(of.Uid), nil
}
