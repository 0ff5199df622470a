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
	begin, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.Ready(begin); err != nil {
		return err
	}
	describe(out, c)
	lines := make(chan string) // it stays open at the end of the input
	go func() {
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for {
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

var errUnknown = errors.New("that is not to be had")

// patience is the time limit for an answer of the cluster.
const patience = 20 * time.Second

func describe(out io.Writer, c *natsd.Cluster) {
	fmt.Fprintln(out, strings.Join(c.URLs(), ","))
	for _, s := range c.Servers {
		fmt.Fprintf(out, "%s  %s  %s  process %d\n", s.Name(), s.URL(), s.Monitor(), s.PID())
	}
	fmt.Fprintln(out, "lines: stop|kill|start|pause|resume|part|heal SERVER, leader STREAM; interrupt to end")
}

// obey carries out a line.
func obey(ctx context.Context, c *natsd.Cluster, line string, out io.Writer) error {
	var verb, name string
	if n, _ := fmt.Sscan(line, &verb, &name); n < 2 {
		return errUnknown
	}
	if verb == "leader" {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		s, err := c.Leader(ctx, name)
		if err == nil {
			fmt.Fprintln(out, s.Name())
		}
		return err
	}
	s, err := c.Named(name)
	if err != nil {
		return err
	}
	switch verb {
	case "stop":
		err = s.Stop()
	case "start":
		err = s.Start()
	case "pause":
		err = s.Pause()
	case "resume":
		err = s.Resume()
	case "kill":
		s.Kill()
	case "part":
		c.Part(s)
	case "heal":
		c.Heal(s)
	default:
		return errUnknown
	}
	if err == nil {
		fmt.Fprintln(out, "done")
	}
	return err
}
