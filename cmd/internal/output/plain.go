package output

import (
	"strings"
	"unicode"
)

// Plain replaces what would do something to a terminal other than being printed in one line. IDs and causes come from
// records that anybody with access to the store can write.
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
