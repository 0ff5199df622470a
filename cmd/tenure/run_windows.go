package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// newRun returns a command that only says that run does not work on this system.
func newRun() *cobra.Command {
	return &cobra.Command{
		Use:                "run",
		Short:              "Run a command while leading, and only then (not on this system)",
		Long:               aboutRun,
		Example:            examplesRun,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			f := fault.New("use the library, which is for this system too, or run the command on Linux or macOS",
				"%w", errors.New("tenure run needs process groups and signals, which this system does not have"))
			f.Code = 125
			return f
		},
	}
}

// beGuard does nothing where there is no run.
func beGuard() {}
