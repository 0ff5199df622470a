package sqlstore

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
