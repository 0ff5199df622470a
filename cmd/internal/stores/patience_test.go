package stores_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
)

func TestConnectEndsWithItsPatience(t *testing.T) {
	url := "nats://" + places.Unreachable + "/E"
	// After 0, 0.1, 0.3, 0.7 and 1.5 s.
	for limit, want := range map[time.Duration]int{0: 0, 2 * time.Second: 5} {
		synctest.Test(t, func(t *testing.T) {
			failures, began := 0, time.Now()
			_, err := stores.Connect(t.Context(), places.Parse(t, url), "key", stores.Options{}, stores.Patience{
				Limit: limit, Told: func(error) { failures++ },
			})
			if !fault.Passes(err) || failures != want || time.Since(began) != limit {
				t.Errorf("%v: %d failures reported, ends after %v with %v", limit, failures, time.Since(began), err)
			}
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := stores.Connect(ctx, places.Parse(t, "nats://"+places.Unreachable+"/E"), "key", stores.Options{}, stores.Patience{
		Limit: stores.Forever, Told: func(error) { cancel(why) },
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
