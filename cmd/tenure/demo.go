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
number above all writes to the bucket, so that none is ever used twice.

Without --store and --context a NATS server with JetStream is started for the demo. As long as it
lasts, anybody on this machine can look into it with the nats command.

Each line of --json has time, event, election, id and term. The library's events have their own
names (candidate, elected, leaving, lost, released, leader, trouble, ...) and perhaps a cause. The
demo's are named "demo" and have what it does in "do"; the last line is the "summary".

Environment, where the flag is not given:
  KEY        --election
  WORKERS    --candidates
  CONTEXT    --context, unless --store is given
  NOSPLAY    1: --splay 0, no random delay at the start; that is the default, so it changes nothing
  NO_COLOR   no colours`

// newDemo is the command that shows an election.
func newDemo() *cobra.Command {
	var d demoFlags
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Show an election at work, and check it",
		Long:    aboutDemo,
		Example: "  tenure demo\n  tenure demo --for 1m --lease 5s --json\n  tenure demo --store nats://host:4222/ELECTIONS --create",
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
