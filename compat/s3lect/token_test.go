package s3lect_test

import (
	"context"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

func mustElection(t *testing.T, store driver.Store, id string) *tenure.Election {
	t.Helper()
	e, err := tenure.New(store, "k", tenure.Config{ID: id, Clock: clock.Standard{}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// turn leads for a moment, and returns the token.
func turn(t *testing.T, e *tenure.Election) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	return term.Token()
}

// A storage of S3lect has no floor. After the object was deleted, the token of an elected candidate
// depends only on the terms that this candidate has seen, not on terms that other living members
// have seen.
func TestTokensOverAStorageAfterADeletion(t *testing.T) {
	bubble(t, func(t *testing.T, inner *memory.Polled) {
		store := s3lect.FromStorage(plain{s3lect.ToStorage(inner)})
		old := mustElection(t, store, "old")
		var highest uint64
		for range 3 {
			highest = turn(t, old)
		}
		inner.Purge("k")
		if token := turn(t, mustElection(t, store, "young")); token >= highest {
			t.Errorf("token %d after %d: the documentation is too careful", token, highest)
		}
		if token := turn(t, old); token <= highest {
			t.Errorf("token %d of a candidate that has seen %d", token, highest)
		}
	})
}
