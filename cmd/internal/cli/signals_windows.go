package cli

import (
	"os"
	"syscall"
)

// endings are the signals that end a command normally: Ctrl-C, and closing the console.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM}

// outliveReaders has nothing to do: no signal comes of a pipe without a reader.
func outliveReaders() {}
