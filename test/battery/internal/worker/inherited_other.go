//go:build !linux

package main

// closeInherited is for Linux, where the battery plays.
func closeInherited() {}
