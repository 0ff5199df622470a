package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/tenure/internal/demo"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
)

// newCandidate is what the demo runs. The name is there for those who look at the list of processes.
func newCandidate() *cobra.Command {
	return &cobra.Command{
		Use:    "candidate NAME",
		Short:  "One candidate of the demo",
		Hidden: true,
		Args:   oneArg,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo.RunCandidate(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
}

func oneArg(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fault.OfUsage(errors.New(c.CommandPath() + " takes one argument"))
	}
	return nil
}
