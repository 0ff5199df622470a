package sqlstore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is the name of a table, perhaps with its schema, without quotes.
type table struct{ schema, name string }

func parseTable(text string) (table, error) {
	t := table{name: text}
	if schema, name, found := strings.Cut(text, "."); found {
		t = table{schema, name}
		if schema == "" {
			return table{}, fmt.Errorf("table %q: the schema before the dot is empty", text)
		}
	}
	switch {
	case t.name == "":
		return table{}, fmt.Errorf("table %q: the name is empty", text)
	case strings.Contains(t.name, "."):
		return table{}, fmt.Errorf("table %q: more than one dot", text)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return table{}, fmt.Errorf("table %q: not plain text", text)
	}
	return t, nil
}

func (t table) String() string {
	if t.schema == "" {
		return t.name
	}
	return t.schema + "." + t.name
}

// quoted returns the name as part of a statement.
func (t table) quoted(quote string) string {
	name := quote + strings.ReplaceAll(t.name, quote, quote+quote) + quote
	if t.schema == "" {
		return name
	}
	return t.in(quote) + name
}

// in returns the schema as the beginning of a name in a statement; empty if there is none.
func (t table) in(quote string) string {
	if t.schema == "" {
		return ""
	}
	return quote + strings.ReplaceAll(t.schema, quote, quote+quote) + quote + "."
}
