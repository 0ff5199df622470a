package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// mainEnv makes the test binary the program: so do its candidates, which inherit it.
const mainEnv = "TENURE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The scripts hold whole command lines with all that they print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"tenure": runTenure},
		Setup: func(e *testscript.Env) error { e.Setenv(mainEnv, "1"); return nil },
	})
}

// runTenure runs the program and compares its exit code: tenure CODE ARGUMENT...
func runTenure(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	self, err := os.Executable()
	ts.Check(err)
	code := 0
	var exit *exec.ExitError
	switch err := ts.Exec(self, args[1:]...); {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}
