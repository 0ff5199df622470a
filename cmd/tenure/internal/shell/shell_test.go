//go:build integration && unix

package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestResult is that of the shell, also if a descendant keeps the output open.
func TestResult(t *testing.T) {
	for line, want := range map[string]string{
		"exit 0":               "",
		"sleep 1000 & exit 0":  "",
		"echo why; exit 3":     "exit status 3: why",
		`test "$NAME" = value`: "",
		"test -z \"$(cat)\"":   "",
		"sleep 1000 & exit 4":  "exit status 4",
		"no-such-command-here": "exit status 127",
	} {
		got := ""
		if err := Run(t.Context(), line, append(os.Environ(), "NAME=value")); err != nil {
			got = err.Error()
		}
		if got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestNoDescendantIsLeft, neither by a shell that ends nor by one that is killed.
func TestNoDescendantIsLeft(t *testing.T) {
	t.Run("ended", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		must.OK(t, Run(t.Context(), "sleep 1000 & echo $! >"+file, os.Environ()))
		guardtest.AwaitEndOf(t, file)
	})
	t.Run("killed", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		result := make(chan error, 1)
		go func() {
			result <- Run(ctx, "sleep 1000 & echo $! >"+file+".new; mv "+file+".new "+file+"; wait", os.Environ())
		}()
		wait.Succeeds(t, "the descendant", func(context.Context) error {
			_, err := os.Stat(file)
			return err
		})
		cancel(enough)
		if err := <-result; !errors.Is(err, enough) {
			t.Errorf("%v", err)
		}
		guardtest.AwaitEndOf(t, file)
	})
}
