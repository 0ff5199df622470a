package tenure_test

import (
	"testing"
	"time"
)

// A process that is stopped between its read and its write must not write over that version: the
// store may have begun its history again during the stop.
func TestNoRequestIsMadeAfterAPause(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		elect(t, store, "a", nil)
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
	})
}
