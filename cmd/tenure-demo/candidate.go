package main

import (
	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/demo"
)

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
