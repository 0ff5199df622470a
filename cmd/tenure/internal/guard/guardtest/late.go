//go:build unix

package guardtest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Where many processes wait for few processors, what is due may be late, whatever the code. So a test that finds something late is tried
// again, a little later each time, and only what is late each time is an error; or says nothing, if the processors are still overloaded then.
const (
	tries = 8
	pause = 250 * time.Millisecond
)

// exitLate is the exit code of a process of a test that is to be tried again.
const exitLate = 99

// tooLate ends the part of a test that looks on from outside.
type tooLate struct{}

// TooLate says of a test in a process of its own that something came too late: the test begins anew, or at last has failed.
func TooLate(t *testing.T, format string, args ...any) {
	t.Helper()
	if try, _ := strconv.Atoi(os.Getenv(tryEnv)); try < tries {
		os.Exit(exitLate)
	}
	late(t, format, args)
}

func late(t *testing.T, format string, args []any) {
	t.Helper()
	if load := overload(); load != "" {
		t.Skipf("%s (the processors are overloaded: %s)", fmt.Sprintf(format, args...), load)
	}
	t.Fatalf(format, args...)
}

// overload says how many processes wait for processors if that is most of the time, as far as the system tells.
func overload() string {
	pressure, _ := os.ReadFile("/proc/pressure/cpu")
	var share float64
	if n, _ := fmt.Sscanf(string(pressure), "some avg10=%f", &share); n == 0 || share < 50 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the last 10 s somebody waited", share)
}

// TooLate is the same for the part that looks on from outside.
func (p *Process) TooLate(format string, args ...any) {
	p.Helper()
	if p.try < tries {
		_ = p.Cmd.Process.Kill()
		panic(tooLate{})
	}
	late(p.T, format, args)
}

// again looks on, and reports whether the test is to be tried again.
func (p *Process) again(outside func(p *Process)) (again bool) {
	p.Helper()
	defer func() {
		switch r := recover(); r {
		case nil:
		case tooLate{}:
			again = true
		default:
			panic(r)
		}
	}()
	outside(p)
	return false
}
