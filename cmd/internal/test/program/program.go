package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// mainEnv makes the test binary the program: so do its candidates, which inherit it.
const mainEnv = "TEST_OF_TENURE_MAIN"

// TestMain lets more tests run side by side than there are processors: they wait far more than they work.
func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		// Without mainEnv a test would run all tests here, and each of them could start more.
		fmt.Fprintf(os.Stderr, "%s is not set for %q\n", mainEnv, os.Args)
		os.Exit(99)
	}
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} { // as nohup has them, or the background of a shell
		if signal.Ignored(s) { // which the programs under test would inherit
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	for _, variable := range os.Environ() { // those of the tests' own tools would be warned of
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "TENURE_") {
			_ = os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{ // for servers of object storage that do not look at them
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_CONFIG_FILE": "none", "AWS_SHARED_CREDENTIALS_FILE": "none",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// The scripts hold whole command lines with all that they print.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

func runScripts(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:   dir,
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
