//go:build integration && unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestDemoOutput runs whole demos on servers inside the demo, and checks their text output.
func TestDemoOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env, args string
		says      []string
		not       string
	}{
		"object storage": {"", "--store s3-embedded:", []string{
			`^Election "demo" in s3://demo-election\?endpoint=http://127\.0\.0\.1:[0-9]+&region=us-east-1$`,
			`look in: +curl http://127\.0\.0\.1:[0-9]+/demo-election/demo$`, `a failover takes up to 2s longer than it must`, ` elected +#1 [0-9]+$`,
		}, "over http"},
		"with peers": {"TENURE_STORE=s3-embedded: TENURE_PEER=127.0.0.1:0", "", []string{
			`The leader reports to its followers directly, over http\.`, ` elected +#1 [0-9]+$`,
		}, "longer than it must"},
		"Kafka": {"", "--store kafka-embedded: --lease 30s", []string{
			`^Election "demo" in kafka://127\.0\.0\.1:[0-9]+,127\.0\.0\.1:[0-9]+,127\.0\.0\.1:[0-9]+/demo-election$`,
			`look in: +kafka-console-consumer\.sh --bootstrap-server 127\.0\.0\.1:[0-9]+,.* --topic demo-election --partition 0`, ` elected +#1 1$`,
		}, "force a failover"},
		"a group": {"TENURE_STORE=kafka-embedded:?mode=neli&session=30s&nominee-only=true", "--lease 30s --inspect", []string{
			`^Consumer group demo nominates the leader: the owner of partition 0 of demo\.neli\. No other candidate ever claims\.$`, ` elected +#1 1$`,
		}, "force a failover"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := inWords(t, strings.Fields(c.env), strings.Fields(c.args))
			for _, want := range append(c.says, `; overlaps found: 0$`) {
				if !regexp.MustCompile("(?m)" + want).MatchString(text) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if strings.Contains(text, c.not) {
				t.Errorf("%q is in\n%s", c.not, text)
			}
		})
	}
}

// inWords runs a demo of two candidates until one is elected.
func inWords(t *testing.T, env, args []string) string {
	t.Helper()
	cmd := exec.Command(guardtest.Self(), append([]string{"--candidates", "2", "--crash-every", "0"}, args...)...)
	cmd.Env = append(append(os.Environ(), program.Env, "TMPDIR="+t.TempDir()), env...)
	var out, errs guardtest.Output
	cmd.Stdout, cmd.Stderr = &out, &errs
	must.OK(t, cmd.Start())
	defer context.AfterFunc(wait.Context(t), func() { _ = cmd.Process.Kill() })()
	wait.Succeeds(t, "a candidate is elected", func(context.Context) error {
		if said := out.String(); !strings.Contains(said, " elected ") {
			return errors.New(said)
		}
		return nil
	})
	must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		t.Errorf("%v; on standard error:\n%s", err, &errs)
	}
	return out.String()
}
