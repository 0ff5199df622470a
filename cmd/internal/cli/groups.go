package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
