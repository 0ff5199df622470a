package kafkad

import (
	"bytes"
	"fmt"
	"os"
)

// isOurs reports whether a process runs that was given this file: numbers of processes are used
// again.
func isOurs(pid int, file string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(args, []byte(file))
}
