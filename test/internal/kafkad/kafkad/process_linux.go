package kafkad

import (
	"bytes"
	"fmt"
	"os"
)

// isOurs reports whether the process runs and has this file on its command line. The number alone
// is not enough, because the system reuses it.
func isOurs(pid int, file string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(args, []byte(file))
}
