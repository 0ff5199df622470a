package tenure_test

import (
	"testing"
	"time"
)

// A process that is stopped between its read and its write writes nothing over that version:
// meanwhile the store may have begun its history again.
func TestNothingIsReplacedAfterAPause(t *testing.T) {
	t.Run("reset", func(t *testing.T) {
		bubbles(t, func(t *testing.T, store operated) {
			store.Put(key, []byte("mine"))
			stopped := between{store, func() { time.Sleep(lease / 2) }}
			if _, err := mustNew(t, stopped, "operator", nil).Reset(t.Context()); err == nil {
				t.Error("Reset returned nil")
			}
			if e, _ := store.Read(t.Context(), key); string(e.Value) != "mine" {
				t.Errorf("the store holds %q", e.Value)
			}
		})
	})
	t.Run("hand-over", func(t *testing.T) {
		bubbles(t, func(t *testing.T, store operated) {
			a := start(t, mustNew(t, store, "a", nil), holdOn)
			within(t, lease, a.won, "term of a")
			written := make(map[string]int)
			stops := 1
			stopped := between{store, func() {
				e, _ := store.Read(t.Context(), key)
				written[string(e.Version)]++
				if stops > 0 {
					stops--
					time.Sleep(lease / 2)
				}
			}}
			if err := mustNew(t, stopped, "operator", nil).HandOver(t.Context(), ""); err != nil {
				t.Errorf("HandOver returned %v", err)
			}
			if len(written) != 2 {
				t.Errorf("it has read %d states, and is to read again after a pause", len(written))
			}
			_ = a.end(t)
		})
	})
}
