package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// The titles of groups that several commands have.
const (
	GroupStore    = "Store"
	GroupElection = "Election"
	GroupLease    = "Lease and its times"
	GroupPeers    = "Peers"
	GroupOutput   = "Output" // the last one
)

// groupKey is the annotation of a flag with the title of its group.
const groupKey = "tenure_group"

// Group puts the flags that are in no group yet into one, for the help and the manual.
func Group(f *pflag.FlagSet, title string) {
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations[groupKey] == nil {
			// It never fails: the flag exists.
			_ = f.SetAnnotation(flag.Name, groupKey, []string{title})
		}
	})
}

// FlagGroup is a group of flags with its title.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// FlagGroups returns the visible flags of a command by group, in the order of their definition. The
// flags without a group have the name of the command as a title. The last group has --help, too.
func FlagGroups(c *cobra.Command) []FlagGroup {
	var all []FlagGroup
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		title := "Flags of " + c.Name()
		if own := flag.Annotations[groupKey]; own != nil {
			title = own[0]
		}
		i := slices.IndexFunc(all, func(g FlagGroup) bool { return g.Title == title })
		if i < 0 {
			i = len(all)
			all = append(all, newFlagGroup(title))
		}
		all[i].Flags.AddFlag(flag)
	})
	if i := slices.IndexFunc(all, func(g FlagGroup) bool { return g.Title == GroupOutput }); i >= 0 {
		output := all[i]
		all = append(slices.Delete(all, i, i+1), output)
	}
	if help := c.Flags().Lookup("help"); help != nil {
		if len(all) == 0 {
			all = append(all, newFlagGroup(""))
		}
		all[len(all)-1].Flags.AddFlag(help)
	}
	if len(all) == 1 {
		all[0].Title = "Flags"
	}
	return all
}

func newFlagGroup(title string) FlagGroup {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	return FlagGroup{title, f}
}

// meantCommand returns the end of an error about a command that does not exist: the name of the one
// that may be meant, or nothing.
func meantCommand(parent *cobra.Command, typed string) string {
	var names []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return meant(closest(typed, names))
}

// meantFlag is meantCommand for a flag.
func meantFlag(c *cobra.Command, typed string) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if name := closest(typed, names); name != "" {
		return meant("--" + name)
	}
	return ""
}

func meant(name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + name + "?"
}

// closest returns the name that may be meant by a text: the nearest one, if at most a third of the
// text is wrong, or else the only one that begins with it. It is empty if there is none.
func closest(typed string, names []string) string {
	best, least := "", max(1, len(typed)/3)+1
	var longer []string
	for _, name := range names {
		if d := Distance(typed, name); d < least {
			best, least = name, d
		}
		if len(typed) > 1 && strings.HasPrefix(name, typed) {
			longer = append(longer, name)
		}
	}
	if best == "" && len(longer) == 1 {
		return longer[0]
	}
	return best
}

// Distance is how many letters of a must be inserted, left out, replaced or swapped with the next
// one to get b.
func Distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1) // the distances between a[:i] and all of b[:j]
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
