// Package cli holds the parts that the commands share: beginning and ending, flags that name a
// store, and variables of the environment that set flags.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

// Main is the whole program: it executes a command line and ends the process.
func Main(root *cobra.Command) {
	os.Exit(run(root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) int {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	if signals := heeded(endings); len(signals) > 0 { // none would mean all
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, signals...)
		defer stop()
	}
	outliveReaders()
	if f, ok := out.(*os.File); ok && output.Keys(f) { // which the live view needs as it is
		return Execute(ctx, root, args, in, out, errs)
	}
	o := &outlet{Writer: out, end: end}
	code := Execute(ctx, root, args, in, o, errs)
	if err := o.lost.Load(); err != nil {
		fault.Print(errs, fmt.Errorf("standard output: %w", *err))
		return fault.Code(*err)
	}
	return code
}

// outlet is standard output. When its reader has gone away, as "| head" does, the command ends in
// good order. It also ends when it cannot write for another reason, as on a full disk, and fails.
type outlet struct {
	io.Writer
	end  func()
	lost atomic.Pointer[error] // why output was lost
}

func (o *outlet) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if err != nil {
		if !errors.Is(err, syscall.EPIPE) {
			o.lost.CompareAndSwap(nil, &err)
		}
		o.end()
	}
	return n, err
}

// heeded leaves out the signals that are ignored from the beginning, as nohup and shells have it.
func heeded(all []os.Signal) []os.Signal { return slices.DeleteFunc(slices.Clone(all), signal.Ignored) }

// Execute returns the exit code. The command ends in good order when ctx does.
func Execute(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) int {
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

// SetUp gives the root command the settings that all commands share.
func SetUp(root *cobra.Command) {
	root.Args, root.SilenceErrors, root.SilenceUsage = NoArgs, true, true
	root.PersistentPreRun = func(c *cobra.Command, _ []string) { warnOfStrangers(c) }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return FlagError(err) })
}

// NoArgs also meets a command that there is none of.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasAvailableSubCommands() {
		return fault.OfUsage(errors.New("unknown command: " + args[0]))
	}
	return fault.OfUsage(errors.New(c.CommandPath() + " takes no arguments, but was given: " + args[0]))
}

// OneArg refuses all but one argument.
func OneArg(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fault.OfUsage(errors.New(c.CommandPath() + " takes one argument"))
	}
	return nil
}
