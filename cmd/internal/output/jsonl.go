// Package output writes lines of JSON, and text that is safe on a terminal.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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
