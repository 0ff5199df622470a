package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// newDemo returns a command that only names tenure-demo. The demo is a separate command, since it
// contains servers.
func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:                "demo",
		Short:              "Name the command of the demo",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return &fault.Error{
				Err:  errors.New("the demo is a separate command, tenure-demo"),
				Hint: "run it with: go run github.com/tenure-go/tenure/cmd/tenure-demo@latest, or in a clone: go run ./cmd/tenure-demo",
				Code: fault.Usage,
			}
		},
	}
}
