//go:build !windows

package output

import "os"

func prepare(*os.File) bool { return true }
