package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

const aboutMan = `Writes a manual page for each command into directory DIR: tenure.1, tenure-run.1 and so on. It makes
the directory if it is missing. Their date is that of SOURCE_DATE_EPOCH, if it is set.

Each line of --json is one object: file, the name of a page that was written.`

func newMan() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "man DIR",
		Short:   "Write manual pages",
		Long:    aboutMan,
		Example: `  tenure man /usr/local/share/man/man1 && man tenure-run`,
		Args:    cli.OneArg,
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := cli.Fill(c.Flags(), os.Getenv, nil); err != nil {
				return err
			}
			on, err := date()
			if err != nil {
				return err
			}
			pages, err := writeManual(newRoot(), args[0], on)
			if err != nil {
				return fault.New("name a directory that you may write to", "%w", err)
			}
			for _, page := range pages {
				if asJSON {
					output.JSON(c.OutOrStdout(), struct {
						File string `json:"file"`
					}{page})
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "list the pages that were written, one JSON object per line")
	return c
}

// writeManual writes all pages, and returns the names of their files.
func writeManual(root *cobra.Command, dir string, on time.Time) (pages []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, c := range documented(root) {
		page := filepath.Join(dir, pageOf(c)+".1")
		if err := os.WriteFile(page, []byte(manual(c, on)), 0o644); err != nil {
			return pages, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// documented returns a command and its subcommands, without the hidden ones.
func documented(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

func pageOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manual returns one page, in the markup of man(7). The generator of package cobra/doc does not
// serve: it fills the lines of lists, drops the groups of flags and the kinds of their values, and
// adds a reader of Markdown to a program that mostly runs commands.
func manual(c *cobra.Command, on time.Time) string {
	var b strings.Builder
	name := pageOf(c)
	fmt.Fprintf(&b, ".TH %q 1 %q %q Tenure\n.nh\n.ad l\n", strings.ToUpper(name), on.Format("Jan 2006"), "tenure "+cli.Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", markup(name), markup(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", markup(c.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", paragraphs(cli.Wrapped(c.Long, widthOfLists)))
	options(&b, c)
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n%s", paragraphs(c.Example))
	}
	b.WriteString(".SH SEE ALSO\n")
	for _, other := range documented(c.Root()) {
		if other != c && (other == c.Parent() || other.Parent() == c) {
			fmt.Fprintf(&b, ".BR %s (1)\n", markup(pageOf(other)))
		}
	}
	return b.String()
}

// widthOfLists is the width of lines that stay as they are, without the margin of a page: manuals
// are mostly read in 80 columns.
const widthOfLists = 72

// options writes the flags of a command, with their defaults.
func options(b *strings.Builder, c *cobra.Command) {
	if !c.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH OPTIONS\n")
	groups := cli.FlagGroups(c)
	for _, g := range groups {
		if len(groups) > 1 {
			fmt.Fprintf(b, ".SS %s\n", markup(g.Title))
		}
		g.Flags.VisitAll(func(f *pflag.Flag) { option(b, f) })
	}
}

func option(b *strings.Builder, f *pflag.Flag) {
	kind, usage := pflag.UnquoteUsage(f)
	if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", markup(strings.TrimSpace("--"+f.Name+" "+kind)), markup(usage))
}

// date returns the time of SOURCE_DATE_EPOCH, so that a build can be reproduced, or else the
// present time.
func date() (time.Time, error) {
	const variable = "SOURCE_DATE_EPOCH"
	text := os.Getenv(variable)
	if text == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fault.OfValue(fault.New("give the seconds since 1970 as a whole number, or unset it", "%s is %q, not a number", variable, text))
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// paragraphs returns a text in markup. Lists have indented lines, which stay unchanged.
func paragraphs(text string) string {
	var b strings.Builder
	listed := false
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !listed:
			b.WriteString(".nf\n")
		case listed && !indented:
			b.WriteString(".fi\n")
		}
		listed = indented
		if line == "\n" {
			line = ".PP\n"
		} else {
			line = markup(line)
		}
		b.WriteString(line)
	}
	if listed {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// markup escapes the characters that have a meaning in the markup.
func markup(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
