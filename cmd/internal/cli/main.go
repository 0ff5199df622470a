// Package cli holds the parts that the commands share: beginning and ending, flags that name a
// store, and variables of the environment that set flags.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

// Main executes the command line of this process, and ends the process.
func Main(root *cobra.Command) {
	os.Exit(run(root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) int {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	// without those that this process inherited as ignored, such as from nohup
	signals := slices.DeleteFunc(slices.Clone(endSignals), signal.Ignored)
	if len(signals) > 0 { // no arguments would mean all signals
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, signals...)
		defer stop()
	}
	outliveReaders()
	if f, ok := out.(*os.File); ok && output.Keys(f) { // the live view needs the file itself
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

// outlet is standard output. When its reader is gone, such as "| head", the command ends normally.
// When a write fails for another reason, such as a full disk, the command ends with an error.
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

// Execute runs a command line and returns the exit code. The command ends normally when ctx ends.
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
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		// of the commands that work on an election; those that run programs log these warnings once
		// their flags are right
		if !slices.Contains([]string{"run", "cron", "tick"}, c.Name()) && c.Flags().Lookup(FlagStore) != nil {
			WarnOfUnknownVariables(c)
		}
	}
	root.SetFlagErrorFunc(FlagError)
	root.SetHelpFunc(help)
	// Cobra prints it as VersionLine does. A template would add text/template, and with it all
	// methods that reflection might call: 12 MB.
	root.Version = build()
	root.Flags().Bool("version", false, "print the version")
	Group(root.Flags(), GroupOutput)
}

// NoArgs refuses arguments, and unknown commands.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasAvailableSubCommands() {
		return fault.OfUsage(errors.New("unknown command: " + fault.Shown(args[0]) + meantCommand(c, args[0])))
	}
	return fault.OfUsage(errors.New(c.CommandPath() + " takes no arguments, but was given: " + fault.Shown(args[0])))
}

// OneArg refuses all but one argument.
func OneArg(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fault.OfUsage(fmt.Errorf("%s takes one argument, %s, but was given %d", c.CommandPath(), strings.TrimPrefix(c.Use, c.Name()+" "), len(args)))
	}
	return nil
}

// Version returns the version of the module: that of its tag, if it was built from one.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}

// Commit returns the revision that the program was built from, with "-dirty" if the tree had
// changes. It is empty if the program was not built in a clone.
func Commit() (commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value + commit
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += "-dirty"
		}
	}
	return commit
}

// VersionLine returns the version of a program, and how it was built.
func VersionLine(program string) string {
	return program + " version " + build()
}

func build() string {
	version := Version()
	if commit := Commit(); commit != "" {
		version += " commit " + commit
	}
	return fmt.Sprintf("%s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// NewLogger returns a logger that writes text, or with json one object per line. Durations are
// written as 15s in both. Credentials of URLs in errors are hidden: see fault.Masked.
func NewLogger(out io.Writer, level slog.Leveler, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch value := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(fault.Masked(Cause(value)))
		case time.Duration:
			a.Value = slog.StringValue(value.String())
		}
		return a
	}}
	if json {
		return slog.New(slog.NewJSONHandler(output.Escaping{Writer: out}, o))
	}
	return slog.New(slog.NewTextHandler(out, o))
}
