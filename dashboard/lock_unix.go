//go:build unix && !solaris && !illumos && !aix

package dashboard

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks the file against other processes until unlock, or until this process ends.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another process uses it: give each dashboard a file of its own")
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
