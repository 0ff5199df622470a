package figures

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes a table as Markdown or for a terminal. Each line has as many cells as there are
// columns.
func Print(out io.Writer, markdown bool, columns []string, lines [][]string) {
	if markdown {
		printMarkdown(out, columns, lines)
	} else {
		printPlain(out, columns, lines)
	}
}

func printPlain(out io.Writer, columns []string, lines [][]string) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, line := range append([][]string{columns}, lines...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

func printMarkdown(out io.Writer, columns []string, lines [][]string) {
	write := func(line []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(line, " | ")) }
	write(columns)
	fmt.Fprintln(out, "|"+strings.Repeat(" --- |", len(columns)))
	for _, line := range lines {
		write(line)
	}
}
