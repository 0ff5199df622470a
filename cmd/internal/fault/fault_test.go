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
}

func TestExitNeedsNoMessage(t *testing.T) {
	var out strings.Builder
	if fault.Print(&out, fault.Exit(3)); out.Len() > 0 || fault.Code(fault.Exit(3)) != 3 {
		t.Errorf("got %q, code %d", out.String(), fault.Code(fault.Exit(3)))
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

func TestCodeOfNoErrorIsZero(t *testing.T) {
	if code := fault.Code(nil); code != 0 {
		t.Errorf("got %d", code)
	}
}
