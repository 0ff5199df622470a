package main

import (
	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
)

const about = `Tenure elects one leader among many processes on the store that they already run.

The demo is a command of its own, tenure-demo.

Exit codes:
  0  done
  1  error: the lines that begin with "error:" say which, the one with "hint:" what to do
  2  usage: a flag, an argument or a variable is wrong
  3  nobody leads
What tenure run exits with is its command's: see its help.

Any flag may be set by a variable of the environment instead, TENURE_STORE for --store and so on. There, or
in the files that the flags name, passwords are out of sight of others on the machine; those in URLs are never
shown. Errors go to standard error as text, also with --json.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Leader election on the store that you already run",
		Long:  about,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cli.SetUp(root)
	root.AddCommand(newRun(), newStatus(), newWatch(), newHandOver(), newReset(), newStores(), newDemo(), newMan(), newVersion())
	addGenerated(root)
	complete(root)
	return root
}
