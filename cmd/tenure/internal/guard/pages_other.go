//go:build !linux

package pages

// GiveBack does nothing here.
func GiveBack() {}
