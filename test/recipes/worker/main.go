// Command worker is a program for tenure run to run where there is no other: it leaves orphans
// behind, says its token, and when it is asked to end it ends with a code of its own.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// asked is what it exits with after SIGTERM.
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

// again runs this program once more, without any file that would have to be there.
func again(arg string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", arg)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c
}

// work leaves orphans, of which each has a parent that did not wait for it, and then does nothing
// until it is asked to end.
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
