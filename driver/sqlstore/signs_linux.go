package sqlstore

import (
	"os"
	"syscall"
)

// signs are the kernel's reports (inotify) that a file of SQLite or its write-ahead log was written
// to, or that the file was renamed or removed. A nil value gives none.
type signs struct {
	fd      int
	reports *os.File
	path    string
	sign    chan struct{}
	ended   chan struct{}
}

// newSigns returns nil if the system gives no reports, such as when this user has too many of them.
func newSigns(path string) *signs {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	s := &signs{fd, os.NewFile(uintptr(fd), "inotify"), path, make(chan struct{}), make(chan struct{})}
	if _, err := syscall.InotifyAddWatch(fd, path, changes); err != nil {
		_ = s.reports.Close()
		return nil
	}
	go s.read()
	return s
}

const changes = syscall.IN_MODIFY | syscall.IN_ATTRIB | syscall.IN_MOVE_SELF | syscall.IN_DELETE_SELF

// follow asks for reports of the write-ahead log that there is now, if there is one. In other
// journal modes a commit writes to the file itself.
func (s *signs) follow() {
	if s != nil {
		_, _ = syscall.InotifyAddWatch(s.fd, s.path+"-wal", changes)
	}
}

// read takes reports until close. It takes no more of them while its last sign waits: the kernel
// keeps one of several equal reports.
func (s *signs) read() {
	buffer := make([]byte, 4096)
	for {
		if _, err := s.reports.Read(buffer); err != nil {
			return
		}
		select {
		case s.sign <- struct{}{}:
		case <-s.ended:
			return
		}
	}
}

// seen returns the channel of the signs.
func (s *signs) seen() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.sign
}

func (s *signs) close() {
	if s != nil {
		close(s.ended)
		_ = s.reports.Close()
	}
}
