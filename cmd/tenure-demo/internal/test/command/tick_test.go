//go:build integration

package command_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
)

// On NATS, three machines start the same line for several ticks. One runs it each time, and prints
// nothing of its own. A bucket that tenure made causes no warning.
func TestTickOverNATS(t *testing.T) {
	t.Parallel()
	p := place{t, as(servers.NATS(t, &server.User{Username: "user", Password: "s3cret"}), "user:s3cret")}
	tick := func(id, name string, flags ...string) *program.Process {
		flags = append([]string{"--id", id, "--tick", name, "--create"}, flags...)
		return p.tenure("tick", append(flags, "--", "sh", "-c", `echo "begun as $TENURE_ID"; sleep 0.2`)...)
	}
	if r := tick("node-0", "first use", "--at-least-once").Run(); r.Code != 0 || r.Out != "begun as node-0\n" || r.Errs != "" {
		t.Fatalf("the first use: %+v", r)
	}
	for _, name := range []string{"a", "b", "c"} {
		var all []*program.Process
		for _, id := range []string{"node-1", "node-2", "node-3"} {
			all = append(all, tick(id, name).Start())
		}
		out := ""
		for _, one := range all {
			r := one.Result()
			if out += r.Out; r.Code != 0 || r.Errs != "" {
				t.Errorf("tick %s: %+v", name, r)
			}
		}
		if strings.Count(out, "begun as ") != 1 || strings.Count(out, "billing: this tick ran on ") != 2 {
			t.Errorf("tick %s:\n%s", name, out)
		}
	}
	runner := p.tenure("tick", "--id", "node-1", "--tick", "d", "--lease", "3s", "--", "sh", "-c", "echo up; sleep 1000").Start()
	runner.Says("up\n")
	other := tick("node-2", "d", "--lease", "3s").Start()
	runner.Signal(syscall.SIGKILL)
	other.Result().Must(t, 0, "^warning: billing: this tick began on node-1 at .*, and was interrupted: it is not run again$")
}
