//go:build integration && linux

package main

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	if err := flag.Set("test.parallel", "4"); err != nil { // rows mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

// TestPlay checks the battery itself: one row of each sort, or one row with -short. The command
// runs the rest and the controls.
func TestPlay(t *testing.T) {
	names := []string{"crash-both", "blackhole", "stop"}
	if testing.Short() {
		names = names[:1]
	}
	b, err := open(wait.Context(t), options{quick: true, lease: 1500 * time.Millisecond, runs: 1, seed: 1}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := choose([]string{"nats"}, name)
			if err != nil {
				t.Fatal(err)
			}
			j := &job{row: chosen[0], runs: 1}
			b.perform(j)
			if o := j.seen; !j.passed() || o.acts.Terms < members {
				t.Errorf("%+v\n%s", o, j.evidence)
			}
		})
	}
}
