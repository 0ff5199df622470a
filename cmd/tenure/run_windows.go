package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

func newRun() *cobra.Command {
	return notHere("run", "Run a command while leading, and only then", aboutRun, examplesRun)
}

func newCron() *cobra.Command { return notHere("cron", shortCron, aboutCron, examplesCron) }

func newTick() *cobra.Command { return notHere("tick", shortTick, aboutTick, examplesTick) }

// notHere returns a command that only says that it does not work on this system.
func notHere(name, short, about, examples string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              short + " (not on this system)",
		Long:               about,
		Example:            examples,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			f := fault.New("use the library, which is for this system too, or run the command on Linux or macOS",
				"%w", errors.New("tenure "+name+" needs process groups and signals, which this system does not have"))
			f.Code = 125
			return f
		},
	}
}

// beGuard does nothing where there is no run.
func beGuard() {}
