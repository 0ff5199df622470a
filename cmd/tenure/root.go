package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/terminal"
)

const about = `Tenure elects one leader among many processes on the store that they already run.

Exit codes:
  0  done
  1  error: the lines that begin with "error:" say which, the one with "hint:" what to do
  2  usage: a flag, an argument or a variable is wrong
  3  nobody leads
What tenure run exits with is its command's: see its help.

Any flag may be set by a variable of the environment instead, TENURE_STORE for --store and so on. There, or
in the files that the flags name, passwords are out of sight of others on the machine; those in URLs are never
shown. Errors go to standard error as text, also with --json.`

// run is the program: it returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	if signals := heeded(endings); len(signals) > 0 { // none would mean all
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, signals...)
		defer stop()
	}
	outliveReaders()
	if f, ok := out.(*os.File); !ok || !terminal.Keys(f) { // which the live view needs as it is
		out = &outlet{Writer: out, end: end}
	}
	return execute(ctx, args, in, out, errs)
}

// outlet is standard output. When its reader has gone away, as "| head" does, the command ends in good order.
type outlet struct {
	io.Writer
	end func()
}

func (o *outlet) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		o.end()
	}
	return n, err
}

// heeded leaves out the signals that are ignored from the beginning, as nohup and shells have it.
func heeded(all []os.Signal) []os.Signal { return slices.DeleteFunc(slices.Clone(all), signal.Ignored) }

// execute ends in good order when ctx does.
func execute(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	command, err := root.ExecuteContextC(ctx)
	if err != nil {
		fault.Print(errs, fault.WithHelp(command.CommandPath(), err))
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

		PersistentPreRun: func(c *cobra.Command, _ []string) { warnOfStrangers(c) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	addRun(root)
	root.AddCommand(newStatus(), newWatch(), newHandOver(), newReset(), newDemo(), newCandidate(), newMan(), newVersion())
	addGenerated(root)
	complete(root)
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
