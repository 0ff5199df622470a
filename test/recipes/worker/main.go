// Command worker is the program that tenure run starts where no other program is installed. It
// leaves orphans behind, prints its token, and exits with code 7 after SIGTERM.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// asked is the exit code after SIGTERM.
const asked = 7

func main() {
	var err error
	switch {
	case len(os.Args) == 1:
		err = work()
	case os.Args[1] == "fork":
		err = again("end").Start()
	case os.Args[1] == "end":
		time.Sleep(50 * time.Millisecond) // its parent has ended by then
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// again returns a command that runs this program once more, from /proc: the file may be missing.
func again(arg string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", arg)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c
}

// work leaves orphans behind, each with a parent that did not wait for it. Then it waits for
// SIGTERM.
func work() error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	const orphans = 5
	for range orphans {
		if err := again("fork").Run(); err != nil {
			return err
		}
	}
	fmt.Println("token", os.Getenv("TENURE_TOKEN"))
	<-end
	os.Exit(asked)
	return nil
}
