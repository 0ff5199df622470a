// Command kafkad runs three Apache Kafka brokers on 127.0.0.1, for use by hand and in scripts. The
// brokers go on when the command ends. Up prints the bootstrap servers. Start and kill change one
// broker, 1 to 3. A signal is TERM, KILL, STOP or CONT:
//
//	go run ./test/internal/kafkad up DIR
//	go run ./test/internal/kafkad kill DIR 1 STOP
//	go run ./test/internal/kafkad start DIR 1
//	go run ./test/internal/kafkad down DIR
//
// It can also only fetch the brokers' program, so that tests need not spend their time on that:
//
//	go run ./test/internal/kafkad install
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafkad:", err)
		os.Exit(1)
	}
}

// commands holds the commands with their numbers of arguments.
var commands = map[string]struct {
	args int
	do   func(ctx context.Context, args []string) error
}{
	"install": {0, install},
	"up":      {1, up},
	"start":   {2, start},
	"kill":    {3, kill},
	"down":    {1, down},
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok && len(args)-1 == command.args {
			return command.do(ctx, args[1:])
		}
	}
	return fmt.Errorf("it is: install | up DIR | start DIR N | kill DIR N TERM|KILL|STOP|CONT | down DIR")
}

func install(ctx context.Context, _ []string) error {
	_, err := kafkad.Install(ctx)
	return err
}

func up(ctx context.Context, args []string) error {
	c, err := kafkad.Up(ctx, args[0], true)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(c.Seeds(), ","))
	fmt.Fprintln(os.Stderr, "with SASL/PLAIN:", strings.Join(c.SASLSeeds(), ","))
	return nil
}

func start(ctx context.Context, args []string) error {
	return with(ctx, args, func(c *kafkad.Cluster, n int) error { return c.Start(n) })
}

func kill(ctx context.Context, args []string) error {
	return with(ctx, args, func(c *kafkad.Cluster, n int) error {
		switch args[2] {
		case "TERM":
			return c.Signal(n, syscall.SIGTERM)
		case "KILL":
			return c.Signal(n, os.Kill)
		case "STOP":
			return c.Pause(n)
		case "CONT":
			return c.Resume(n)
		}
		return fmt.Errorf("%q is none of the signals TERM, KILL, STOP and CONT", args[2])
	})
}

// with calls do for the cluster in a directory and the number of one of its brokers.
func with(ctx context.Context, args []string, do func(*kafkad.Cluster, int) error) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, err := kafkad.Load(ctx, args[0])
	if err != nil {
		return err
	}
	return do(c, n)
}

func down(ctx context.Context, args []string) error {
	c, err := kafkad.Load(ctx, args[0])
	if err != nil {
		return err
	}
	return c.End()
}
