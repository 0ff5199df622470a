package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/tenure/internal/demo"
	"github.com/tenure-go/tenure/cmd/tenure/internal/terminal"
)

const aboutDemo = `Starts candidates as processes of their own, lets them elect a leader, and every few seconds
kills the leader, freezes it, or asks it to end. Each line shows when a candidate did what in which
term and why; a new leader's line shows what the failover took beside the least that it could take.

Meanwhile every act of every leader is checked: none may come after the first act of a later term.
Overlaps are told loudly and make the exit code 1. Terms grow, with gaps: a new leader takes a
number above all writes to the bucket, on object storage the server's clock in milliseconds, so
that none is ever used twice.

Without --store and --context a NATS server with JetStream is started for the demo, with --store
s3-embedded: a server of object storage. As long as it lasts, anybody on this machine can look into
it with the nats command or with curl.

Object storage, --store s3://BUCKET[/PREFIX][?...], takes these parameters:
  endpoint=URL       a server other than S3 itself
  region=NAME        that of the bucket; us-east-1 does for most other servers
  path-style=BOOL    address the bucket by path; true by default where there is an endpoint
  unquoted=true      begin with ETags without quotes, as Ceph wants them; found out otherwise
Credentials come from where all of AWS's tools have them, such as AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws or the machine's role, never from the URL.

Object storage does not push changes. With --peer each candidate listens, publishes its address in
the record while it leads, and tells the others of renewals and of its release. A port of 0 is a
free one for each candidate, another one the first candidate's, and the others take those after it.
Only addresses in --peer-allow are dialled: by default those of the loopback interface if the
candidate's own address is one, and otherwise the private ones (10.0.0.0/8, 172.16.0.0/12,
192.168.0.0/16, fc00::/7). A public address needs --peer-allow. Without certificates peers talk
plain HTTP; what they tell is signed in any case.

Each line of --json has time, event, election, id and term. The library's events have their own
names (candidate, elected, leaving, lost, released, leader, trouble, ...) and perhaps a cause. The
demo's are named "demo" and have what it does in "do"; the last line is the "summary".

Environment, where the flag is not given:
  TENURE_*   any flag: TENURE_STORE for --store, TENURE_CRASH_EVERY for --crash-every and so on
  KEY        --election
  WORKERS    --candidates
  CONTEXT    --context, unless --store or TENURE_STORE is given
  NOSPLAY    1: --splay 0, no random delay at the start; that is the default, so it changes nothing
  NO_COLOR   no colours`

const examplesDemo = `  tenure demo
  tenure demo --for 1m --lease 5s --json
  tenure demo --store nats://host:4222/ELECTIONS --create
  tenure demo --store s3-embedded:
  tenure demo --store s3-embedded: --peer 127.0.0.1:0
  tenure demo --store 's3://bucket/elections?endpoint=http://127.0.0.1:9000&region=us-east-1' --create`

// newDemo is the command that shows an election.
func newDemo() *cobra.Command {
	var d demoFlags
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Show an election at work, and check it",
		Long:    aboutDemo,
		Example: examplesDemo,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := d.options(c.Flags(), os.Getenv)
			if err != nil {
				return err
			}
			o.Command, o.Out = reexecute, c.OutOrStdout()
			o.Colour = terminal.Colours(o.Out)
			return demo.Run(c.Context(), o)
		},
	}
	d.define(c.Flags())
	return c
}

// reexecute runs this very program as a candidate.
func reexecute(id string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, "candidate", id)
}
