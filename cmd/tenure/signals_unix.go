//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// endings are what ends a command in good order.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// outliveReaders keeps this process from being ended where it stands when it writes to a pipe that has no reader. The signal says nothing
// of which file that was, and comes for connections too: the error of the write does. Commands that are run do not inherit this.
func outliveReaders() {
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}
