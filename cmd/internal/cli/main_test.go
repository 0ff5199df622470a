package cli

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// failing is a standard output whose writes fail.
type failing struct{ why error }

func (f failing) Write([]byte) (int, error) { return 0, f.why }

// Lost output is an error, unless the reader has closed the output. The command ends in both cases.
func TestLostOutput(t *testing.T) {
	for _, c := range []struct {
		why   error
		code  int
		error string
	}{
		{syscall.ENOSPC, 1, "error: standard output: " + syscall.ENOSPC.Error()},
		{errors.New("closed"), 1, "error: standard output: closed"},
		{syscall.EPIPE, 0, ""},
	} {
		t.Run(c.why.Error(), func(t *testing.T) {
			root := &cobra.Command{Use: "it", RunE: func(c *cobra.Command, _ []string) error {
				fmt.Fprintln(c.OutOrStdout(), "text")
				<-c.Context().Done()
				return nil
			}}
			SetUp(root)
			var errs strings.Builder
			code := run(root, nil, strings.NewReader(""), failing{c.why}, &errs)
			if code != c.code || strings.TrimSpace(errs.String()) != c.error {
				t.Errorf("exit code %d, and\n%s", code, errs.String())
			}
		})
	}
}
