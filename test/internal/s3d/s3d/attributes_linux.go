package s3d

import (
	"fmt"
	"syscall"
)

// checkAttributes fails where versitygw would fail later with a less clear error.
func checkAttributes(p place) error {
	if err := syscall.Setxattr(p.data(), "user.tenure", []byte("1"), 0); err != nil {
		return fmt.Errorf("%s keeps no extended attributes (%w), which versitygw needs: set TMPDIR to a directory on ext4, xfs or btrfs, "+
			"or on tmpfs with Linux 6.6 or newer", p.data(), err)
	}
	return nil
}
