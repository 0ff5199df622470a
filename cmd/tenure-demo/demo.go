// Command tenure-demo shows an election at work, and checks it. It starts candidates as processes,
// and a server for them unless a store is named:
//
//	tenure-demo
//	tenure-demo --help
package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/demo"
	"github.com/tenure-go/tenure/internal/crew"
)

var aboutDemo = `Starts candidates as separate processes, lets them elect a leader, and every few seconds kills the
leader, freezes it, or asks it to end. A terminal shows the leader, the time left on the lease as an
observer can know it, which candidate led when, and how long failovers took, with the least possible
time; q ends it. If output is no terminal, and with --plain, each line shows one event with its
time, candidate, term and reason. The line of a new leader has the time of the failover.

The demo checks every act of every leader: none may come after the first act of a later term. It
reports an overlap, and then exits with code 1. Terms are numbered as the demo saw them, #1, #2 and
so on, with the fencing token beside the number. Tokens grow, with gaps, and none is ever used
twice. A new leader's token is higher than the number that the store gave to any earlier write. On
NATS, object storage and databases it is also higher than the time of a server's clock.

Without --store and --context the demo starts a NATS server with JetStream. It can start other
servers, too; the colon is part of the value:
  --store s3-embedded:     a server of object storage
  --store kafka-embedded:  three brokers of Kafka; the parameters of Kafka may follow
While a server runs, every user of this machine can inspect it with the nats command, with curl or
with Kafka's tools.

The flags that name a store take the same values as in tenure run. With --peer and port 0, each
candidate gets a free port. With another port, the first candidate gets that port, and the others
the ports after it.

` + stores.About("nats") + `

Each line of --json has time, event, election, id and term. The events of the library are candidate,
elected, leaving, lost, released, leader, trouble and so on; some have a cause. The events of the
demo are named "demo", with the action in "do"; the last line is the "summary".

Environment, where the flag is not given:
  TENURE_*   any flag: TENURE_STORE for --store, TENURE_CRASH_EVERY for --crash-every and so on
  KEY        --election
  WORKERS    --candidates
  CONTEXT    --context, unless --store or TENURE_STORE is given
  NOSPLAY    1: --splay 0, no random delay at the start; that is the default, so it changes nothing
  NO_COLOR   no colors
  TERM       dumb: line by line`

const examplesDemo = `  tenure-demo
  tenure-demo --for 1m --lease 5s --json
  tenure-demo --store nats://host:4222/ELECTIONS --create
  tenure-demo --store s3-embedded:
  tenure-demo --store s3-embedded: --peer 127.0.0.1:0
  tenure-demo --store kafka-embedded:
  tenure-demo --store 'kafka-embedded:?mode=neli&session=3s'
  tenure-demo --store 's3://bucket/elections?endpoint=http://127.0.0.1:9000&region=us-east-1' --create
  tenure-demo --store kafka://kafka-1:9092,kafka-2:9092/elections --kafka-properties client.properties`

// newRoot returns the whole command line: the demo, and the hidden command for its candidates.
func newRoot() *cobra.Command {
	var d demoFlags
	c := &cobra.Command{
		Use:               "tenure-demo",
		Short:             "Show an election at work, and check it",
		Long:              aboutDemo,
		Example:           examplesDemo,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := d.options(c.Flags(), os.Getenv)
			if err != nil {
				return err
			}
			command := func(id string) *exec.Cmd { return crew.Self("candidate", id) }
			o.Command, o.In, o.Out = command, c.InOrStdin(), c.OutOrStdout()
			o.Await.Told = d.where.Waiting(c.ErrOrStderr())
			o.Colour = output.Colours(o.Out)
			o.Live = !o.JSON && !o.Plain && !o.Verbose && output.Screen(o.Out)
			return demo.Run(c.Context(), o)
		},
	}
	cli.SetUp(c)
	c.SetHelpCommand(&cobra.Command{Hidden: true})
	d.define(c.Flags())
	c.AddCommand(newCandidate())
	return c
}

func main() { cli.Main(newRoot()) }

// newCandidate returns the hidden command that the demo runs for each candidate. The argument is
// only shown in the list of processes.
func newCandidate() *cobra.Command {
	return &cobra.Command{
		Use:    "candidate NAME",
		Short:  "One candidate of the demo",
		Hidden: true,
		Args:   cli.OneArg,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo.RunCandidate(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
}
