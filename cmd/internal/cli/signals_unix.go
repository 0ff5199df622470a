//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// endSignals are the signals that end a command normally.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// outliveReaders prevents SIGPIPE from ending this process. The signal also arrives for broken
// connections and does not name the file, so the error of each write decides. Commands that tenure
// runs do not inherit this.
func outliveReaders() {
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}
