package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

func TestPrintWritesALineForEachProblemAndOneForTheHint(t *testing.T) {
	for _, c := range []struct {
		why  string
		err  error
		want string
		code int
	}{
		{"a plain error has no remedy", errors.New("broken"), "error: broken\n", 1},
		{"a hint comes last", fault.New("mend it", "%s is broken", "x"), "error: x is broken\nhint: mend it\n", 1},
		{"all problems are printed", &fault.Error{Err: errors.Join(errors.New("a"), errors.New("b")), Hint: "c"}, "error: a\nerror: b\nhint: c\n", 1},
		{"a fault is found below others", fmt.Errorf("demo: %w", fault.New("mend it", "broken")), "error: demo: broken\nhint: mend it\n", 1},
		{"misuse has a code of its own", fault.OfUsage(errors.New("no such flag")), "error: no such flag\n", 2},
		{"the help of the command is the hint", fault.WithHelp("tenure run", fmt.Errorf("x: %w", fault.OfUsage(errors.New("wrong")))),
			"error: x: wrong\nhint: see tenure run --help\n", 2},
		{"an exit code needs no message", fault.Exit(3), "", 3},
		{"only of a misuse", fault.WithHelp("tenure run", fault.New("mend it", "broken")), "error: broken\nhint: mend it\n", 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			var out strings.Builder
			fault.Print(&out, c.err)
			if out.String() != c.want || fault.Code(c.err) != c.code {
				t.Errorf("got %q, code %d; want %q, code %d", out.String(), fault.Code(c.err), c.want, c.code)
			}
		})
	}
	if code := fault.Code(nil); code != 0 {
		t.Errorf("without an error the code is %d", code)
	}
}

// A prefix keeps the code, the hint and the class of an error.
func TestBehindKeepsTheDetailsOfAnError(t *testing.T) {
	f := fault.Passing("wait", "down")
	f.Code = 7
	got := fmt.Errorf("x: %w", f.Behind("--store"))
	var out strings.Builder
	fault.Tell(&out, "waiting", got)
	if out.String() != "waiting: x: --store: down\nhint: wait\n" || fault.Code(got) != 7 || !fault.Passes(got) {
		t.Errorf("got %q, code %d", out.String(), fault.Code(got))
	}
	if fault.Passes(fault.New("", "denied")) || fault.Passes(errors.New("down")) {
		t.Error("a permanent error counts as passing")
	}
}

func TestShown(t *testing.T) {
	for value, want := range map[string]string{
		"10.0.0.7:8443":                "10.0.0.7:8443",
		"[fe80::1%eth0]:80":            "[fe80::1%eth0]:80",
		"http://10.0.0.7:80":           "http://10.0.0.7:80",
		"15 seconds":                   "15 seconds",
		"/etc/kafka/client.properties": "/etc/kafka/client.properties",
		"billing-worker-7d9f8b6c5-abcde-node-with-a-long-name": "billing-worker-7d9f8b6c5-abcde-node-with-a-long-name",
		"u@h":                          "***",
		"u%40h":                        "***",
		"password=x":                   "***",
		"http://h/?x":                  "***",
		"http://u:x":                   "***",
		"http%3A%2F%2Fu:x":             "***",
		"http://u:1://x":               "***",
		"-----BEGIN KEY-----\nx":       "***",
		"SU" + strings.Repeat("A", 56): "***",
	} {
		if got := fault.Shown(value); got != want {
			t.Errorf("%q is shown as %q, want %q", value, got, want)
		}
	}
}

func TestMasked(t *testing.T) {
	for text, want := range map[string]string{
		`Get "http://u:x@y@h/p": EOF`:     `Get "http://***@h/p": EOF`,
		"nats://a/E, or mail me@h":        "nats://a/E, or mail me@h",
		"at https://h/p, then s3://i:k@b": "at https://h/p, then s3://***@b",

		"a postgres://bob:***@h/db, b mysql://eve@h": "a postgres://bob:***@h/db, b mysql://eve@h",
		"postgres://bob:x@y@h, nats://bob:***@h":     "postgres://bob:***@h, nats://***@h",
	} {
		if got := fault.Masked(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

// Only in the URL of a database is it certain that a user is one. In those of other stores a token,
// or the key of an account, may be in its place.
func TestUser(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://bob:x":                       "bob:***",
		"postgresql://bob_1.a-b:x:y@z":           "bob_1.a-b:***",
		"mysql://bob":                            "bob",
		"mariadb://bob:***":                      "bob:***",
		"postgres://x:":                          "***",
		"postgres://:x":                          "***",
		"postgres://bob%3Ax":                     "***",
		"postgres://bob@x":                       "***",
		"postgres://a,b:x":                       "***",
		"postgres://7x:y":                        "***",
		"postgres://k" + strings.Repeat("x", 39): "***",
		"nats://bob:x":                           "***",
		"nats://x":                               "***",
		"s3://id:x":                              "***",
		"kafka://bob:x":                          "***",
		"http://bob:x":                           "***",
	} {
		scheme, info, _ := strings.Cut(url, "://")
		if got := fault.User(scheme, info); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
