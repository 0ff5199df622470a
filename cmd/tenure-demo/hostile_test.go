//go:build integration && unix

package main

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

func TestServerTextIsSanitized(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]string{
		"NATS": "nats://" + program.Rude(t) + "/E", "no scheme": program.Hostile, "no bucket": "nats://h/" + program.Hostile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "--store", store)
			for _, ok := s.read(); ok; _, ok = s.read() {
			}
			_ = s.cmd.Wait()
			if code := s.cmd.ProcessState.ExitCode(); code <= 0 {
				t.Errorf("exit code %d", code)
			}
			program.Harmless(t, s.errs.String())
		})
	}
}
