package tenure_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/nomination"
)

// sentinels are the exported errors of the package.
var sentinels = map[string]error{
	"ErrRunning": tenure.ErrRunning, "ErrDecline": tenure.ErrDecline,
	"ErrLost": tenure.ErrLost, "ErrNoLeader": tenure.ErrNoLeader,
	"ErrShutdown": tenure.ErrShutdown, "ErrTooLate": tenure.ErrTooLate,
	"ErrDenied": tenure.ErrDenied, "ErrExpired": tenure.ErrExpired, "ErrDeposed": tenure.ErrDeposed,
	"ErrOverdue": tenure.ErrOverdue, "ErrAbandoned": tenure.ErrAbandoned, "ErrReleased": tenure.ErrReleased,
	"ErrUnconfirmed": tenure.ErrUnconfirmed, "ErrHandOver": tenure.ErrHandOver, "ErrIneligible": tenure.ErrIneligible,
}

func TestEachErrorHasItsOwnReason(t *testing.T) {
	if declared := declaredErrors(t); !slices.Equal(declared, slices.Sorted(maps.Keys(sentinels))) {
		t.Fatalf("the package declares %q, and this test knows %q", declared, slices.Sorted(maps.Keys(sentinels)))
	}
	doc, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	of := map[tenure.Reason]string{}
	for name, err := range sentinels {
		r := tenure.ReasonOf(fmt.Errorf("wrapped: %w", err))
		if r == "" || r == "other" || of[r] != "" {
			t.Errorf("the reason of %s is %q, as that of %q", name, r, of[r])
		}
		of[r] = name
		if !strings.Contains(string(doc), fmt.Sprintf("//\t%-18s %s", r, name)) {
			t.Errorf("the documentation does not list %s with %s", r, name)
		}
	}
}

func declaredErrors(t *testing.T) (names []string) {
	packages, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range packages {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

func TestReasonOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want tenure.Reason
		why  string
	}{
		{nil, "", "there is no error"},
		{errors.New("timeout"), "other", "the store's errors are without number"},
		{errors.Join(tenure.ErrLost, tenure.ErrExpired), "expired", "the cause says more"},
		{fmt.Errorf("%w: %w", tenure.ErrLost, errors.New("x")), "lost", "the cause is not one of these"},
		{fmt.Errorf("read: %w", driver.ErrDenied), "denied", "drivers wrap the driver's value"},
		{&tenure.ConfigError{Fields: []tenure.FieldError{{Field: "Lease"}}}, "config", ""},
		{fmt.Errorf("read: %w", driver.ErrUnfit), "unfit", "drivers wrap the driver's value"},
		{errors.Join(tenure.ErrLost, nomination.ErrWithdrawn), "nomination-lost", "it is a cause like the others"},
		{errors.Join(tenure.ErrLost, damage(driver.Regressed)), "regressed", "the kind of damage says more"},
		{fmt.Errorf("trouble: %w", &tenure.ShortLeaseError{}), "short-lease", ""},
	} {
		if got := tenure.ReasonOf(c.err); got != c.want {
			t.Errorf("the reason of %v is %q, want %q: %s", c.err, got, c.want, c.why)
		}
	}
}
