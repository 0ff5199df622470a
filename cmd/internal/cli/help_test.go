package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestWrapped(t *testing.T) {
	const text = `A paragraph that is too long for a narrow terminal, and is filled again.

A list:
  name  a text that is too long and goes on
        in a second line
  other short
	command --that stays --as it is
`
	const want = `A paragraph that is too long
for a narrow terminal, and is
filled again.

A list:
  name  a text that is too
        long and goes on in a
        second line
  other short
    command --that stays --as it is
`
	if got := Wrapped(text, 30); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Each line of the help fits, except for words that are longer, and each flag is in one group.
func TestHelpFitsTheTerminal(t *testing.T) {
	c := &cobra.Command{Use: "run --store URL [flags]", Short: "Run", Long: strings.Repeat("Words of a description. ", 30), Run: func(*cobra.Command, []string) {}}
	var s StoreFlags
	s.Define(c.Flags())
	c.Flags().String("election", "", strings.Repeat("name of the election, ", 10))
	Group(c.Flags(), GroupElection)
	c.Flags().Bool("json", false, "one JSON object per line")
	Group(c.Flags(), GroupOutput)
	c.Flags().Bool("once", false, "exit")
	c.InitDefaultHelpFlag()
	for _, width := range []int{40, 80, 120} {
		text := helpText(c, width)
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width && len(words) > 1 {
				t.Errorf("width %d: %d columns in %q", width, n, line)
			}
		}
	}
	times, titles := map[string]int{}, []string{}
	for _, g := range FlagGroups(c) {
		titles = append(titles, g.Title)
		for line := range strings.Lines(g.Flags.FlagUsages()) {
			if _, name, ok := strings.Cut(line, "--"); ok {
				times[strings.Fields(name)[0]]++
			}
		}
	}
	if got := strings.Join(titles, ", "); got != "Store, Election, Flags of run, Output" {
		t.Errorf("the groups are %s", got)
	}
	for _, name := range []string{"store", "election", "json", "once", "help"} {
		if times[name] != 1 {
			t.Errorf("--%s is listed %d times", name, times[name])
		}
	}
}

func TestClosest(t *testing.T) {
	names := []string{"status", "stores", "watch", "hand-over", "dashboard", "run", "peer", "peer-key", "peer-cert"}
	for typed, want := range map[string]string{
		"staus":     "status",
		"sttaus":    "status",
		"wacth":     "watch",
		"handover":  "hand-over",
		"dash":      "dashboard",
		"rn":        "run",
		"per":       "peer",
		"peer-crt":  "peer-cert",
		"peer-":     "peer",
		"st":        "", // status or stores
		"x":         "",
		"nothing":   "",
		"elections": "",
		"":          "",
	} {
		if got := closest(typed, names); got != want {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
}
