package stores_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// unreachable is an address without a listener. The port is never assigned.
const unreachable = "127.0.0.1:1"

func parse(t *testing.T, url string) stores.Place {
	t.Helper()
	p, err := stores.Parse("--store", url)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConnectEndsWithItsPatience(t *testing.T) {
	url := "nats://" + unreachable + "/E"
	// After 0, 0.1, 0.3, 0.7 and 1.5 s.
	for limit, want := range map[time.Duration]int{0: 0, 2 * time.Second: 5} {
		synctest.Test(t, func(t *testing.T) {
			failures, began := 0, time.Now()
			_, err := stores.Connect(t.Context(), parse(t, url), "key", stores.Options{}, stores.Patience{
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
	_, err := stores.Connect(ctx, parse(t, "nats://"+unreachable+"/E"), "key", stores.Options{}, stores.Patience{
		Limit: stores.Forever, Told: func(error) { cancel(why) },
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
