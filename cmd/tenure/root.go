package main

import (
	"context"
	"errors"
	"io"
	"os/signal"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
)

const about = `Tenure elects one leader among many processes on the store that they already run.

Exit codes:
  0  done
  1  error: the lines that begin with "error:" say which, the one with "hint:" what to do
  2  usage: the command line is wrong`

// run is the program: it returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), endings...)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fault.Print(errs, err)
	}
	return fault.Code(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tenure",
		Short:         "Leader election on the store that you already run",
		Long:          about,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fault.OfUsage(err) })
	root.AddCommand(newDemo(), newCandidate(), newVersion())
	return root
}

// noArgs also meets a command that there is none of.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		return fault.OfUsage(errors.New("unknown command: " + args[0]))
	}
	return fault.OfUsage(errors.New(c.CommandPath() + " takes no arguments, but was given: " + args[0]))
}
