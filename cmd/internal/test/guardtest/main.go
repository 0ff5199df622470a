//go:build unix

package guardtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"testing"
)

// Main is for TestMain. By the first argument it makes the test binary a guard or a worker, or else
// runs the tests. More tests run side by side than there are processors, since they mostly wait.
func Main(m *testing.M, guard func(numbers []string) error) {
	err := flag.Set("test.parallel", "8")
	switch role := append(os.Args, "", "")[1]; role {
	case "guard":
		err = guard(os.Args[2:])
	case "worker":
		err = work(os.Args[2])
	default:
		// a shell ignores it for background jobs: guards and workers would inherit that
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

// Guard returns the command line of a guard.
func Guard() *exec.Cmd { return exec.Command(Self(), "guard") }

// Self returns the path of the test binary.
func Self() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return self
}

// Output collects text, which can be read while it is written.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
