//go:build unix

package main

import (
	"os"
	"syscall"
)

// endings are what ends a command in good order. With SIGPIPE among them, a reader that goes away ("| head") does so too,
// instead of ending the process where it stands.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}
