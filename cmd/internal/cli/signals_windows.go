package cli

import (
	"os"
	"syscall"
)

// endSignals are the signals that end a command normally: Ctrl-C, and closing the console.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// outliveReaders does nothing: a write to a pipe without a reader causes no signal here.
func outliveReaders() {}
