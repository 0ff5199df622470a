// Package output writes to people and to programs: quantities, lines of JSON, and text that is safe
// on a terminal.
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

// JSON writes one object. The types are ours, so that none of them can fail.
func JSON(out io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("tenure: a line of JSON: " + err.Error())
	}
	fmt.Fprintf(out, "%s\n", Escape(text))
}

// Escape escapes characters that JSON allows in its strings but that a terminal does not print:
// U+007F to U+009F, and characters without a shape, such as those that turn the direction. The
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

// Escaping does so for JSON of other packages, one object at a time.
type Escaping struct{ io.Writer }

// Write reports the length of the given text.
func (e Escaping) Write(text []byte) (int, error) {
	_, err := e.Writer.Write(Escape(text))
	return len(text), err
}
