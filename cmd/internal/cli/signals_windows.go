package cli

import (
	"os"
	"syscall"
)

// endings are what ends a command in good order: Ctrl-C, and closing the console.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM}

// outliveReaders has nothing to do: no signal comes of a pipe without a reader.
func outliveReaders() {}
