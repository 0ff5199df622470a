package output

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// Colours reports whether w is a terminal whose user wants colors: NO_COLOR must be empty, and TERM
// not "dumb".
func Colours(w io.Writer) bool {
	f, ok := file(w)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return prepare(f)
}

// Screen reports whether w is a terminal on which text can be overwritten. On most systems that
// depends on TERM: on a "dumb" one it cannot.
func Screen(w io.Writer) bool {
	f, ok := file(w)
	if kind := os.Getenv("TERM"); !ok || kind == "dumb" || kind == "" && runtime.GOOS != "windows" {
		return false
	}
	return prepare(f)
}

// Keys reports whether f is a terminal, from which keys can be read one by one.
func Keys(f *os.File) bool {
	_, ok := file(f)
	return ok
}

func file(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && f != nil && term.IsTerminal(int(f.Fd()))
}
