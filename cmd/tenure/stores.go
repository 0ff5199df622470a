package main

import (
	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
)

const aboutStores = `NATS, --store nats://[USER:PASSWORD@]HOST[:PORT],.../BUCKET[?...] or tls://..., takes these parameters:
  migrating=true     candidates of nats-kv-leader-elect take part
  pristine=true      you know that no candidate used an earlier bucket of this name: so none has
                     to wait for one lease
With --context NAME[/BUCKET] the servers and credentials come from a context of the nats command.

` + cli.AboutStores

// newStores returns the command that explains --store and --peer, for all commands that have them.
func newStores() *cobra.Command {
	return &cobra.Command{
		Use:   "stores",
		Short: "Explain what --store and --peer take",
		Long:  aboutStores,
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}
