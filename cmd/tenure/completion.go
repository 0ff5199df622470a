package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// addGenerated adds the commands that the library cobra generates, with errors like those of the
// other commands.
func addGenerated(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Short = "Write the script for completion in a shell"
			c.Args, c.RunE = cli.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Args = cli.NoArgs
			}
		case "help":
			c.Args = aCommand
		}
	}
}

// aCommand returns an error unless the arguments name a command.
func aCommand(c *cobra.Command, args []string) error {
	if found, _, err := c.Root().Find(args); err != nil || found == nil || found == c.Root() && len(args) > 0 {
		return fault.OfUsage(errors.New("unknown command: " + strings.Join(args, " ")))
	}
	return nil
}

// complete adds completion for flags whose values are known. For other flags it prevents the
// completion of file names.
func complete(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Flags().Lookup(cli.FlagContext) != nil {
			_ = c.RegisterFlagCompletionFunc(cli.FlagContext, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return stores.Contexts(), cobra.ShellCompDirectiveNoFileComp
			})
		}
		for _, name := range []string{cli.FlagStore, "election", "id", "to"} {
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
			}
		}
	}
}
