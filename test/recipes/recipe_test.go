//go:build integration

package recipes

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// releasing is the time that a release may take, with some retries.
const releasing = 5 * time.Second

// recipe is one documented way to start tenure run.
type recipe struct {
	name string
	args []string // the arguments after tenure
	env  map[string]string
	// stop is the time that the supervisor waits between SIGTERM and SIGKILL. It is zero for a line
	// of a document.
	stop time.Duration
}

// own returns the arguments for tenure itself.
func (r recipe) own() []string {
	if i := slices.Index(r.args, "--"); i >= 0 {
		return r.args[:i]
	}
	return r.args
}

// setting returns the value of a flag from the command line or from its variable, or "".
func (r recipe) setting(flag string) string {
	own := r.own()
	for i, arg := range own {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != "--"+flag:
		case joined:
			return value
		case i+1 < len(own):
			return own[i+1]
		}
	}
	return r.env["TENURE_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))]
}

// takes returns a setting that a recipe must have: its reader must be able to add up the times.
func (r recipe) takes(t *testing.T, flag string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(r.setting(flag))
	if err != nil {
		t.Fatalf("%s: --%s: %v", r.name, flag, err)
	}
	return d
}

// deployed returns the recipes that describe how tenure is stopped.
func deployed(t *testing.T) []recipe {
	t.Helper()
	return []recipe{service(t), deployment(t), composed(t)}
}

func TestTenureHasTimeToRelease(t *testing.T) {
	for _, r := range deployed(t) {
		t.Run(r.name, func(t *testing.T) {
			least := r.takes(t, "finish-within") + r.takes(t, "stop-within") + releasing
			if r.stop < least {
				t.Errorf("killed %v after SIGTERM, but finishing, being killed and releasing may take %v", r.stop, least)
			}
		})
	}
}

func TestNoPasswordInACommandLine(t *testing.T) {
	for _, r := range deployed(t) {
		if line := strings.Join(r.args, " "); strings.Contains(line, "--store") || strings.Contains(line, "@") {
			t.Errorf("%s: the store has a password, and is to come from TENURE_STORE: %s", r.name, line)
		}
	}
}
