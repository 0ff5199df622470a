// Command natsd runs three NATS servers on 127.0.0.1 as a cluster, with JetStream and file storage,
// for use by hand. It prints their addresses, and ends the servers when it is interrupted:
//
//	go run ./test/internal/natsd/natsd [-dir DIR]
//
// Each line of its input acts on one of the servers, or prints the leader of a stream, for example
//
//	pause n1
//	leader KV_ELECTIONS
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/test/internal/natsd"
)

func main() {
	natsd.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("natsd", flag.ContinueOnError)
	dir := flags.String("dir", "", "the `directory` for the servers' files, which stay; none is a temporary one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		temporary, err := os.MkdirTemp("", "natsd-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		*dir = temporary
	}
	c, err := natsd.StartPartible(*dir)
	if err != nil {
		return err
	}
	defer c.Kill()
	if err := ready(ctx, c); err != nil {
		return err
	}
	describe(out, c)
	for lines := read(in); ; {
		select {
		case line := <-lines:
			if err := obey(ctx, c, line, out); err != nil {
				fmt.Fprintf(out, "%s: %v\n", line, err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// read returns a channel of the lines. At the end of the input the channel stays open.
func read(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// patience is the time limit for an answer of the cluster.
const patience = 20 * time.Second

func ready(ctx context.Context, c *natsd.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Ready(ctx)
}

func describe(out io.Writer, c *natsd.Cluster) {
	fmt.Fprintln(out, strings.Join(c.URLs(), ","))
	for _, s := range c.Servers {
		fmt.Fprintf(out, "%s  %s  %s  process %d\n", s.Name(), s.URL(), s.Monitor(), s.PID())
	}
	fmt.Fprintln(out, "lines: stop|kill|start|pause|resume|part|heal SERVER, leader STREAM; interrupt to end")
}

// commands holds the commands that a line may have.
var commands = map[string]func(ctx context.Context, c *natsd.Cluster, with string, out io.Writer) error{
	"stop":   onServer((*natsd.Server).Stop),
	"start":  onServer((*natsd.Server).Start),
	"pause":  onServer((*natsd.Server).Pause),
	"resume": onServer((*natsd.Server).Resume),
	"kill":   onServer(func(s *natsd.Server) error { s.Kill(); return nil }),
	"part":   onRoutes((*natsd.Cluster).Part),
	"heal":   onRoutes((*natsd.Cluster).Heal),
	"leader": leader,
}

func obey(ctx context.Context, c *natsd.Cluster, line string, out io.Writer) error {
	words := strings.Fields(line)
	if len(words) == 2 {
		if do, ok := commands[words[0]]; ok {
			return do(ctx, c, words[1], out)
		}
	}
	return errors.New("that is not to be had")
}

func onServer(do func(*natsd.Server) error) func(context.Context, *natsd.Cluster, string, io.Writer) error {
	return func(_ context.Context, c *natsd.Cluster, name string, out io.Writer) error {
		s, err := c.Named(name)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
		fmt.Fprintln(out, "done")
		return nil
	}
}

func onRoutes(do func(*natsd.Cluster, *natsd.Server)) func(context.Context, *natsd.Cluster, string, io.Writer) error {
	return func(ctx context.Context, c *natsd.Cluster, name string, out io.Writer) error {
		return onServer(func(s *natsd.Server) error { do(c, s); return nil })(ctx, c, name, out)
	}
}

func leader(ctx context.Context, c *natsd.Cluster, stream string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := c.Leader(ctx, stream)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, s.Name())
	return nil
}
