//go:build !linux

package sqlstore

// signs of writes to a file: this system gives none.
type signs struct{}

func newSigns(string) *signs { return nil }

func (*signs) follow() {}

func (*signs) seen() <-chan struct{} { return nil }

func (*signs) close() {}

// isMountPoint reports false: no file can be mounted by itself on this system, or no list shows it.
func isMountPoint(string) (bool, error) { return false, nil }

// hasOpen reports false: this system has no list of the open files.
func hasOpen(_, _ string) (bool, error) { return false, nil }

// networkFileSystem does not know other systems than Linux.
func networkFileSystem(string) string { return "" }
