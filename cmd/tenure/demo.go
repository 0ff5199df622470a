package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// newDemo says where the demo is, which is a command of its own: it contains servers.
func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:                "demo",
		Short:              "Say where the demo is",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return &fault.Error{
				Err:  errors.New("the demo is a command of its own, tenure-demo"),
				Hint: "go run github.com/tenure-go/tenure/cmd/tenure-demo@latest, or in a clone: go run ./cmd/tenure-demo",
				Code: fault.Usage,
			}
		},
	}
}
