package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

const aboutMan = `Writes a manual page for each command into a directory, which is made if it is missing: tenure.1,
tenure-run.1 and so on. Their date is that of SOURCE_DATE_EPOCH, if it is set.

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
			pages, err := writeManual(newRoot(), args[0])
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
	c.Flags().BoolVar(&asJSON, "json", false, "tell which pages were written, one JSON object per line")
	return c
}

// writeManual returns the names of the files.
func writeManual(root *cobra.Command, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	forManual(root)
	header := &doc.GenManHeader{Section: "1", Source: "tenure " + version(), Manual: "Tenure"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "tenure*.1"))
}

// forManual has the help texts read as the manual's markup, for all commands.
func forManual(c *cobra.Command) {
	c.DisableAutoGenTag = true
	c.Long = asMarkup(c.Long)
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = markup.Replace(f.Usage) })
	for _, sub := range c.Commands() {
		forManual(sub)
	}
}

// markup are the characters that mean something there.
var markup = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `<`, `\<`, "`", "\\`", `[`, `\[`)

// asMarkup keeps lists, whose lines are indented, as they stand.
func asMarkup(text string) string {
	var b strings.Builder
	listed := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "  ")
		if indented != listed {
			b.WriteByte('\n')
			listed = indented
		}
		if indented {
			b.WriteString("    " + line)
		} else {
			b.WriteString(markup.Replace(line))
		}
	}
	return b.String()
}
