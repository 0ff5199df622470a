package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
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

func TestLogLines(t *testing.T) {
	short := &tenure.ShortLeaseError{Lease: time.Second, Took: time.Second, Least: 3 * time.Second, Err: errors.New("late")}
	for json, want := range map[bool][]string{
		false: {`msg=seen lease=1m30s cause="`, "--lease"},
		true:  {`"msg":"seen","lease":"1m30s","cause":"`, "--lease"},
	} {
		var out strings.Builder
		log := NewLogger(&out, slog.LevelInfo, json)
		log.Debug("unseen")
		log.Info("seen", "lease", 90*time.Second, "cause", short)
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("json %v: no %s in %s", json, part, out.String())
			}
		}
		if strings.Contains(out.String(), "unseen") {
			t.Errorf("json %v: below the level: %s", json, out.String())
		}
	}
}
