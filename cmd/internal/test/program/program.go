// Package program lets a test binary be the program that it tests, in processes of their own.
package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// variable makes the test binary run as the program. Candidates and guards inherit it.
const variable = "TEST_OF_TENURE_MAIN"

// Env is for the environment of a process that is the program.
const Env = variable + "=1"

// Main is for TestMain. More tests run side by side than there are processors, since they mostly
// wait.
func Main(m interface{ Run() int }, main func()) {
	if os.Getenv(variable) != "" {
		main()
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		// Without the variable a test would run all tests here, and each of them could start more.
		fmt.Fprintf(os.Stderr, "%s is not set for %q\n", variable, os.Args)
		os.Exit(99)
	}
	_ = flag.Set("test.parallel", "8")
	// nohup ignores these signals, and a shell for background jobs
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(s) { // the programs under test would inherit this
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	for _, v := range os.Environ() { // the program would warn of those of the tests' own tools
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TENURE_") {
			_ = os.Unsetenv(name)
		}
	}
	// credentials for servers of object storage that do not check them
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_CONFIG_FILE": "none", "AWS_SHARED_CREDENTIALS_FILE": "none",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		_ = os.Setenv(name, value)
	}
	os.Exit(m.Run())
}

// Scripts runs the scripts of a directory. They hold command lines with their output, and check the
// exit code: NAME CODE ARGUMENT...
func Scripts(t *testing.T, name, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:   dir,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){name: execute},
		Setup: func(e *testscript.Env) error { e.Setenv(variable, "1"); return nil },
	})
}

func execute(ts *testscript.TestScript, _ bool, args []string) {
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

// Hostile is text that changes a terminal in several ways.
const Hostile = "\x1b[31m \x07\r \x7f \u009b31m \u202e \u2066 \u200f \u2028 \U000e0041"

// Harmless checks that a text is not empty and has only printable characters and line ends.
func Harmless(t *testing.T, text string) {
	t.Helper()
	if text == "" {
		t.Error("nothing is written")
	}
	for i, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U in %q", r, text[max(0, i-60):min(len(text), i+20)])
			return
		}
	}
}

// Serve listens until the test ends, and serves each connection. It returns its address.
func Serve(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// Rude starts a NATS server that refuses each client with a text of control characters. It returns
// its address.
func Rude(t *testing.T) string {
	t.Helper()
	return Serve(t, func(c net.Conn) {
		fmt.Fprint(c, `INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"headers":true}`+"\r\n")
		_, _ = c.Read(make([]byte, 4096))
		fmt.Fprint(c, "-ERR 'no \x1b[31m \u009b31m \u202e \x7f'\r\n")
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	})
}
