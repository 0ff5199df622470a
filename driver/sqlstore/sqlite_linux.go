package sqlstore

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// hasOpen reports whether this process has open a file that was removed from a path, or one with
// the identity former, unless that is empty. Without /proc it reports false.
func hasOpen(path, former string) (bool, error) {
	const dir = "/proc/self/fd"
	all, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for _, fd := range all {
		name := filepath.Join(dir, fd.Name())
		if to, err := os.Readlink(name); err == nil && to == path+" (deleted)" {
			return true, nil
		}
		if former == "" {
			continue
		}
		if its, _ := identity(name); its == former {
			return true, nil
		}
	}
	return false, nil
}

// isMountPoint reports whether a file, by its absolute path without symbolic links, is itself
// mounted, as by "docker run -v e.db:/data/e.db". Neither its device nor its inode shows that.
// Without /proc it reports false.
func isMountPoint(path string) (bool, error) {
	list, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer func() { _ = list.Close() }()
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && unescape(fields[4]) == path {
			return true, nil
		}
	}
	return false, lines.Err()
}

// unescape replaces the octal escapes of proc(5), such as \040 for a space.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// networkFileSystem returns the kind of a network file system, or an empty string.
func networkFileSystem(dir string) string {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return ""
	}
	return map[uint32]string{ // statfs(2)
		0x6969: "nfs", 0x517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x01021997: "9p",
		0x00c36400: "ceph", 0x5346414f: "afs", 0x65735546: "fuse",
	}[uint32(stat.Type)]
}
