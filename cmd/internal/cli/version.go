package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version returns the version of the module, with the revision if it was built from a clone.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v += " " + s.Value
		}
	}
	return v
}

// VersionLine returns the version of a program, and how it was built.
func VersionLine(program string) string {
	return fmt.Sprintf("%s %s %s %s/%s", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
