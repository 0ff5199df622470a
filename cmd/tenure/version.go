package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Prints the version, as tenure --version does. The object of --json has version, go, os and arch.",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := cli.Fill(c.Flags(), os.Getenv, nil); err != nil {
				return err
			}
			out := c.OutOrStdout()
			if !asJSON {
				fmt.Fprintln(out, cli.VersionLine("tenure"))
				return nil
			}
			output.JSON(out, struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as a JSON object")
	return c
}
