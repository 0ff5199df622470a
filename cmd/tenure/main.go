// Command tenure runs programs under a leader election, and shows and changes elections. Its help
// lists the commands:
//
//	tenure --help
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

func main() {
	beGuard()
	cli.Main(newRoot())
}

const about = `Tenure elects one leader among the copies of a service, on the store that you already run.

A separate command, tenure-demo, shows an election at work.

Exit codes:
  0  done
  1  error: lines with "error:" describe it, and a line with "hint:" gives the remedy, if known
  2  usage: a flag, an argument or a variable is wrong
  3  nobody leads
  4  status, list: a leader is not confirmed; doctor: a check warns or could not be made
  5  doctor: the store is unsafe
tenure run exits with the code of the program that it runs: see tenure help run.

Any flag may come from the environment instead: TENURE_STORE for --store, and so on. Other users of
the machine cannot see a password in a variable, or in a file that a flag names. Tenure never prints
a password of a URL. Errors go to standard error as text, also with --json.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Leader election on the store that you already run",
		Long:  about,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cli.SetUp(root)
	root.AddCommand(
		newRun(), newCron(), newTick(), newJobs(), newStatus(), newList(), newWatch(), newDashboard(),
		newDoctor(), newAgent(), newHandOver(), newReset(), newEndLease(), newStores(), newDemo(), newMan(),
		newInstall(), newVersion(),
	)
	addGenerated(root)
	complete(root)
	return root
}

// command returns a command without arguments, whose flags are listed in the order of their
// definition.
func command(use, short, long, examples string, run func(c *cobra.Command) error) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Example: examples, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return run(c) },
	}
	c.Flags().SortFlags = false
	return c
}

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
		"catch-up":   oneOf("last", "none", "all"),
		"overlap":    oneOf("skip", "queue"),
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
var namesFile = regexp.MustCompile(`-(ca|cert|key|file|properties)$|^(history|file|output)$`)

func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// newDemo returns a command that only names tenure-demo. The demo is a separate command, since it
// contains servers.
func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:                "demo",
		Short:              "Name the command of the demo",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return &fault.Error{
				Err:  errors.New("the demo is a separate command, tenure-demo"),
				Hint: "run it with: go run github.com/tenure-go/tenure/cmd/tenure-demo@latest, or in a clone: go run ./cmd/tenure-demo",
				Code: fault.Usage,
			}
		},
	}
}

func newVersion() *cobra.Command {
	var asJSON bool
	const about = "Prints the version, as tenure --version does. The object of --json has version, commit, go,\nos and arch; commit is empty in a program that was not built in a clone."
	c := command("version", "Print the version", about, "", func(c *cobra.Command) error {
		if _, err := cli.Fill(c.Flags(), os.Getenv, nil); err != nil {
			return err
		}
		out := c.OutOrStdout()
		if !asJSON {
			fmt.Fprintln(out, cli.VersionLine("tenure"))
			return nil
		}
		output.JSON(out, struct {
			Version string `json:"version"`
			Commit  string `json:"commit"`
			Go      string `json:"go"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
		}{cli.Version(), cli.Commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
		return nil
	})
	c.Flags().BoolVar(&asJSON, "json", false, "as a JSON object")
	return c
}

// newStores returns the command that explains the URLs of stores.
func newStores() *cobra.Command {
	return command("stores", "Explain what --store and --peer take", stores.About(), "", (*cobra.Command).Help)
}

const aboutRun = `Runs COMMAND while this candidate leads the election, and never while another candidate leads. The
command runs without a shell, and inherits standard input, output and error. Logs go to standard
error.

The command finds TENURE_ELECTION, TENURE_ID and TENURE_TOKEN in its environment. The token is
higher in every later term. So a resource that refuses writes with a lower token than it has seen is
safe even from a command that was frozen and resumes. With --slots, TENURE_SLOT is the number of the
slot, and tokens are those of the slot.

When the lease is lost, the command's process group gets SIGTERM, and then SIGKILL, early enough to
be dead before another candidate can be elected. A guard, a second process, ensures this even if
this process dies, is stopped or hangs. If both are killed, processes that have left the command's
process group live on, unless --pid-namespace is set: then the command runs in a PID namespace,
which the kernel ends. After a loss this candidate campaigns again, or with --once exits.

When run receives SIGTERM or SIGINT, it passes the signal on to the command, which then has
--finish-within to finish. Until then run renews the lease, and then releases it, so that the next
leader starts at once. A second such signal kills the command at once. Other signals are passed on
to the command. When the command ends by itself, run ends the processes that the command has left
behind, releases the lease, and exits with the command's code.

If the command ended within 5 seconds (1 second with code 0), run waits until that time has passed,
and up to a quarter longer, before it exits. Otherwise leadership would move all the time if a
supervisor starts run again at once. With --restart the command is run again in the same term and
with the same token, after pauses that grow from 1 second. During a pause no command runs. After
five failures in a row, each within 10 seconds, other candidates get their turn. They also do if the
command cannot be started.

Exit codes:
  N    the command's, if it ended by itself or because run was asked to end; 128+S if signal S ended it
  0    run was asked to end while it did not lead
  121  leadership was lost or handed over, with --once
  122  the command was not run: not elected within --wait, or at once with --no-wait
  125  no election could be held: wrong flags, no store, no rights
  126  the command cannot be executed
  127  there is no such command

--wait and --no-wait count until the command first runs. With --no-wait run waits neither for another
leader nor for a lease to end. It gives up, too, if no record shows who led last, as when the
election is new: then every candidate waits for a lease. After a release it only lets others claim
first if they have precedence.

A flag that is not given may come from the environment: TENURE_STORE for --store, TENURE_STOP_WITHIN
for --stop-within, and so on. tenure help stores explains the values of --store and --peer.`

const examplesRun = `  tenure run --store nats://nats:4222/ELECTIONS --election billing -- ./billing-scheduler --config prod.yaml
  tenure run --store s3://bucket/elections --election nightly --lease 30s --once -- backup.sh
  tenure run --store nats://nats:4222/ELECTIONS --election billing --restart on-failure -- ./billing-scheduler
  tenure run --store kafka://kafka-1:9092/elections --election writer --stop-within 2s -- java -jar writer.jar`
