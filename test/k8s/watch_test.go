//go:build integration

package k8s

import (
	"bytes"
	"context"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/k8sd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// TestHalfOpenWatch: a watch whose answers are lost stays open, and says nothing. The store notices
// this and reports that no changes are pushed. When answers come again, so do the changes.
func TestHalfOpenWatch(t *testing.T) {
	for _, r := range k8sd.Rigs() {
		t.Run(r.Name, func(t *testing.T) {
			if testing.Short() && r.Soak {
				t.Skip("the soak does it")
			}
			t.Parallel()
			s := r.Start(t, true)
			watched, way := s.Open(t, 0)
			writer, _ := s.Open(t, 1)
			pushes := make(chan driver.Entry, 1000)
			stop, err := driver.AbilitiesOf(watched).Watcher.Watch(wait.Context(t), name, func(e driver.Entry) { pushes <- e })
			rig.Must(t, err)
			defer stop()
			version := write(t, writer, "", "one")
			await(t, pushes, "the first change", func(e driver.Entry) bool { return bytes.Equal(e.Value, []byte("one")) })
			way.Mute()
			version = write(t, writer, version, "two")
			await(t, pushes, "a report of the loss", func(e driver.Entry) bool { return e.Lost != nil })
			way.Heal()
			await(t, pushes, "the missed change", func(e driver.Entry) bool { return bytes.Equal(e.Value, []byte("two")) })
			write(t, writer, version, "three")
			await(t, pushes, "the next change", func(e driver.Entry) bool { return bytes.Equal(e.Value, []byte("three")) })
		})
	}
}

func write(t *testing.T, s driver.Store, from driver.Version, value string) driver.Version {
	t.Helper()
	v, err := s.CompareAndSwap(wait.Context(t), name, from, []byte(value))
	rig.Must(t, err)
	return v
}

// await waits for a push.
func await(t *testing.T, pushes <-chan driver.Entry, what string, is func(driver.Entry) bool) {
	t.Helper()
	wait.Succeeds(t, what, func(ctx context.Context) error {
		for {
			select {
			case e := <-pushes:
				if is(e) {
					return nil
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}
