//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDefaultOfStopWithin(t *testing.T) {
	for lease, want := range map[string]time.Duration{"1s": 200 * time.Millisecond, "1m": 5 * time.Second} {
		var r runFlags
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		r.define(f)
		if err := f.Parse([]string{"--store", "nats://host/E", "--election", "billing", "--lease", lease}); err != nil {
			t.Fatal(err)
		}
		if err := r.resolve(f, func(string) string { return "" }); err != nil || r.stopWithin != want {
			t.Errorf("for a lease of %s it is %v (%v)", lease, r.stopWithin, err)
		}
	}
}
