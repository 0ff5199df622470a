package output

import (
	"strings"
	"unicode"
)

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
