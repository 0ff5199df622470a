package main

import (
	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// newStores returns the command that explains --store and --peer, for all commands that have them.
func newStores() *cobra.Command {
	return &cobra.Command{
		Use:   "stores",
		Short: "Explain what --store and --peer take",
		Long:  stores.About(),
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}
