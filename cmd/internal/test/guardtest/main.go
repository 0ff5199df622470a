//go:build unix

package guardtest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"
)

// Main is for TestMain: it makes the test binary a guard if the first argument says so, or a
// worker. It lets more tests run side by side than there are processors, since they wait far more
// than they work.
func Main(m *testing.M, guard func(numbers []string) error) {
	err := flag.Set("test.parallel", "8")
	switch role := append(os.Args, "", "")[1]; role {
	case "guard":
		err = guard(os.Args[2:])
	case "worker":
		err = work(os.Args[2])
	default:
		// as in the background of a shell: guards and workers would inherit it
		if signal.Ignored(os.Interrupt) {
			signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		}
		if err == nil {
			os.Exit(m.Run())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Guard is the command line of a guard.
func Guard() *exec.Cmd { return exec.Command(Self(), "guard") }

// Self is the test binary.
func Self() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return self
}
