//go:build !linux

package sqlstore

// networkFileSystem does not know other systems than Linux.
func networkFileSystem(string) string { return "" }
