//go:build integration && unix

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
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
	p := program.Command(t, guardtest.Self(), append([]string{"--candidates", "2", "--crash-every", "0"}, args...)...)
	p.Cmd.Env = append(append(p.Cmd.Env, "TMPDIR="+t.TempDir()), env...)
	p.Start().Says(" elected ")
	p.Stops(0)
	if p.Errs.String() != "" {
		t.Errorf("on standard error:\n%s", &p.Errs)
	}
	return p.Out.String()
}
