package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

// help prints the help of a command, in lines that fit the terminal.
func help(c *cobra.Command, _ []string) {
	out := c.OutOrStdout()
	fmt.Fprint(out, helpText(c, output.Width(out)))
}

func helpText(c *cobra.Command, width int) string {
	var b strings.Builder
	b.WriteString(Wrapped(cmp.Or(c.Long, c.Short), width))
	b.WriteString("\nUsage:\n")
	if c.Runnable() {
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s", continued(c.Example, width))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			b.WriteString(Wrapped(fmt.Sprintf("  %-*s  %s", sub.NamePadding(), sub.Name(), sub.Short), width))
		}
	}
	for _, g := range FlagGroups(c) {
		fmt.Fprintf(&b, "\n%s:\n", g.Title)
		for line := range strings.Lines(g.Flags.FlagUsages()) {
			b.WriteString(Wrapped(line, width))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nThe help of a command: %s help COMMAND\n", c.Root().Name())
	}
	return b.String()
}

// Wrapped returns a text in lines of at most a width, if its words allow that. A paragraph is
// filled. An indented line is an item of a list: its lines begin below its text, which two spaces
// separate from its name. A line that is indented more continues it. Lines that begin with a tab
// are commands, and stay as they are.
func Wrapped(text string, width int) string {
	var b strings.Builder
	var block []string
	flush := func() {
		if len(block) > 0 {
			fill(&b, block, width)
		}
		block = nil
	}
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, "\t"):
			flush()
			b.WriteString(strings.Replace(line, "\t", "    ", 1) + "\n")
			continue
		case !continues(block, line):
			flush()
		}
		block = append(block, line)
	}
	flush()
	return b.String()
}

// continues reports whether a line belongs to the block before it.
func continues(block []string, line string) bool {
	return len(block) > 0 && (indent(block[0]) == 0) == (indent(line) == 0) && (indent(line) == 0 || indent(line) > indent(block[0]))
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// leastText is the least width of a text beside the name of its item. Below it, the text begins in
// the next line.
const leastText = 24

// fill writes one paragraph, or one item.
func fill(b *strings.Builder, block []string, width int) {
	begin := strings.Repeat(" ", indent(block[0]))
	hang, text := begin, strings.Join(block, " ")
	if name, rest, ok := strings.Cut(strings.TrimLeft(block[0], " "), "  "); ok && begin != "" {
		at := strings.Index(block[0], name+"  ") + len(name) + 2 + indent(rest)
		begin, hang = block[0][:at], strings.Repeat(" ", at)
		text = strings.Join(append([]string{rest}, block[1:]...), " ")
		if width-at < min(leastText, width/2) {
			hang = strings.Repeat(" ", indent(block[0])+4)
			begin = strings.TrimRight(begin, " ") + "\n" + hang
		}
	}
	used := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case used == 0:
			b.WriteString(begin)
			used = len(hang)
		case used+1+len(word) > width:
			b.WriteString("\n" + hang)
			used = len(hang)
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	b.WriteString("\n")
}

// continued breaks command lines in front of their flags, as a shell understands.
func continued(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		used := 0
		for i, part := range strings.Split(strings.TrimSuffix(line, "\n"), " --") {
			if i > 0 {
				part = " --" + part
			}
			if i > 0 && used+len(part) > width-2 {
				b.WriteString(" \\\n     ")
				used = 5
			}
			b.WriteString(part)
			used += len(part)
		}
		b.WriteString("\n")
	}
	return b.String()
}
