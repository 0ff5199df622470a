// Package output writes lines of JSON, and text that is safe on a terminal.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// Head is the beginning of every object about an election, as in the library's events.
type Head struct {
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`
	Election string    `json:"election"`
	// ID is the ID of the member that reports the event.
	ID string `json:"id"`
	// Term is 0 where there is none.
	Term uint64 `json:"term"`
}

// JSON writes one object. It panics if v cannot be encoded; all types of this program can be.
func JSON(out io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("tenure: a line of JSON: " + err.Error())
	}
	fmt.Fprintf(out, "%s\n", Escape(text))
}

// Escape escapes characters that JSON allows in its strings but that a terminal does not print:
// U+007F to U+009F, and invisible characters, such as those that change the direction of text. The
// value stays the same.
func Escape(text []byte) []byte {
	var safe []byte
	for i, r := range string(text) {
		if r < 0x7f || unicode.IsPrint(r) {
			safe = append(safe, text[i:i+utf8.RuneLen(r)]...)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe
}

// Escaping is a writer that calls Escape for JSON of other packages, one object per Write.
type Escaping struct{ io.Writer }

// Write returns the length of the given text, not that of the escaped one.
func (e Escaping) Write(text []byte) (int, error) {
	_, err := e.Writer.Write(Escape(text))
	return len(text), err
}

// Plain replaces characters that would make a terminal do something other than print one line. IDs
// and causes come from records, and any client of the store can write those.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, text)
}

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
