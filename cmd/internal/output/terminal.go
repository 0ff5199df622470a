package output

import (
	"io"
	"os"
	"runtime"
	"strconv"

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

// The widths of text for people: at least, at most, and where the terminal does not say.
const (
	leastWidth = 40
	usualWidth = 100
	mostWidth  = 120 // longer lines are hard to read
)

// Width returns how many columns the lines of a text for w may have: those of the variable COLUMNS,
// or else of the terminal.
func Width(w io.Writer) int {
	width := usualWidth
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	} else if f, ok := file(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			width = n
		}
	}
	return min(max(width, leastWidth), mostWidth)
}
