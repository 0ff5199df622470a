package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+differ(a[i], b[j]))
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differ(x, y byte) int {
	if x == y {
		return 0
	}
	return 1
}
