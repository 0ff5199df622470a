package main

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/cli"
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
	found, rest, err := c.Root().Find(args)
	if err == nil && !found.HasAvailableSubCommands() {
		return nil
	}
	return cli.NoArgs(found, rest)
}

// complete adds completion to the flags: of the values that are known, of file names where a flag
// names a file, and of nothing for the others.
func complete(root *cobra.Command) {
	known := map[string]cobra.CompletionFunc{
		cli.FlagContext: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return stores.Contexts(), cobra.ShellCompDirectiveNoFileComp
		},
		"restart":    oneOf("never", "on-failure", "always"),
		"log-format": oneOf("text", "json"),
		"log-level":  oneOf("debug", "info", "warn", "error"),
	}
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			values := known[f.Name]
			switch {
			case namesFile.MatchString(f.Name), f.Value.Type() == "bool":
				return
			case values == nil:
				values = cobra.NoFileCompletions
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, values)
		})
	}
}

// namesFile matches the flags that take a file.
var namesFile = regexp.MustCompile(`-(ca|cert|key|file|properties)$|^history$`)

func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}
