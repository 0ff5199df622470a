package main

import (
	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
)

const about = `Tenure elects one leader among the copies of a service, on the store that you already run.

A separate command, tenure-demo, shows an election at work.

Exit codes:
  0  done
  1  error: lines with "error:" describe it, and a line with "hint:" gives the remedy, if known
  2  usage: a flag, an argument or a variable is wrong
  3  nobody leads
tenure run exits with the code of the program that it runs: see tenure help run.

Any flag may come from the environment instead: TENURE_STORE for --store, and so on. Other users of
the machine cannot see a password in a variable, or in a file that a flag names. Tenure never prints
a password of a URL. Errors go to standard error as text, also with --json.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Leader election on the store that you already run",
		Long:  about,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cli.SetUp(root)
	root.AddCommand(newRun(), newStatus(), newList(), newWatch(), newDashboard(), newHandOver(), newReset(), newEndLease(), newStores(), newDemo(), newMan(), newVersion())
	addGenerated(root)
	complete(root)
	return root
}
