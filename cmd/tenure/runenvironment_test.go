//go:build integration && unix

package main

import (
	"strings"
	"testing"
)

// A variable that the command line has overridden names another store, which "tenure status" in the
// command would ask.
func TestCommandDoesNotInheritOverriddenVariables(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap(nil, "env")
	w.cmd.Env = append(w.cmd.Env, "TENURE_STORE=nats://other/E", "TENURE_LEASE=7s", "TENURE_ID=other", "TENURE_RENEW=50s", "TENURE_HISTORY=x")
	w.start().ends(0)
	got := "\n" + w.out.String()
	for _, none := range []string{"TENURE_STORE=", "TENURE_LEASE=", "TENURE_ID=other", "s3cret@"} {
		if strings.Contains(got, none) {
			t.Errorf("it has %s in\n%s", none, got)
		}
	}
	for _, want := range []string{"TENURE_ID=node-1", "TENURE_RENEW=50s", "TENURE_HISTORY=x", "TENURE_TOKEN="} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("it lacks %s in\n%s", want, got)
		}
	}
}
