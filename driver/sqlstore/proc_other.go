//go:build !linux

package sqlstore

// isMountPoint reports false: no file can be mounted by itself on this system, or no list shows it.
func isMountPoint(string) (bool, error) { return false, nil }

// hasOpen reports false: this system has no list of the open files.
func hasOpen(_, _ string) (bool, error) { return false, nil }
