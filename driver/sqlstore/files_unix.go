//go:build unix

package sqlstore

import (
	"fmt"
	"os"
	"syscall"
)

// identity returns device and inode of the file at a path, and the number of its hard links. It
// returns an empty string if there is no such file.
func identity(path string) (string, uint64) {
	info, err := os.Stat(path)
	if err != nil {
		return "", 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", 0
	}
	return fmt.Sprintf("%d/%d", stat.Dev, stat.Ino), uint64(stat.Nlink) //nolint:unconvert // other systems count in fewer bits
}
