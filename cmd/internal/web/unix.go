package web

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// unixScheme is how an address names a socket in the file system.
const unixScheme = "unix:"

// listenUnix listens at a path. Only processes of this user, and of root, can connect. It takes the
// place of a socket that no process serves any more.
func listenUnix(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return ownUser{l}, nil
}

// removeStale removes a socket that nobody serves.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("this file is there already, and is no socket")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
		return errors.New("another process serves it")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// ownUser accepts connections of processes of this user and of root alone.
type ownUser struct{ net.Listener }

// Accept implements net.Listener.
func (l ownUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || isOwn(c) {
			return c, err
		}
		_ = c.Close()
	}
}

func isOwn(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	uid, err := peerUser(u)
	return err == nil && (uid == 0 || uid == os.Getuid())
}

// unixPath returns the path of an address such as unix:/run/tenure.sock.
func unixPath(address string) (path string, ok bool) { return strings.CutPrefix(address, unixScheme) }
