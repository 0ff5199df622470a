// Package terminal tells whether to write in colour.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Colours reports whether w is a terminal whose user wants colours: NO_COLOR must be empty, and TERM not "dumb".
func Colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return term.IsTerminal(int(f.Fd())) && prepare(f)
}
