//go:build integration

package tenure_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// TestDefaultIDsInContainers: in a PID namespace, every first process has the process id 1, and
// containers may share their host's name.
func TestDefaultIDsInContainers(t *testing.T) {
	const child = "TENURE_TEST_DEFAULT_ID"
	if os.Getenv(child) != "" {
		fmt.Printf("%d %s %s\n", os.Getpid(), defaultID(t), defaultID(t))
		return
	}
	seen := map[string]bool{}
	for range 2 {
		c := exec.Command(os.Args[0], "-test.run=^TestDefaultIDsInContainers$")
		c.Env = append(os.Environ(), child+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
		out, err := c.Output()
		if err != nil {
			t.Skipf("NOT TESTED: this user may not make PID namespaces: %v", err)
		}
		var pid, first, second string
		if _, err := fmt.Sscan(string(out), &pid, &first, &second); err != nil || pid != "1" || first != second {
			t.Fatalf("process %s has the IDs %s and %s (%v)", pid, first, second, err)
		}
		if seen[first] || !strings.Contains(first, "_1_") {
			t.Errorf("a process has the ID %s", first)
		}
		seen[first] = true
	}
}

func defaultID(t *testing.T) string {
	t.Helper()
	e, err := tenure.New(memory.New(), "billing", tenure.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e.ID()
}
