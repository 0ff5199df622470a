package stores_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
)

func TestLimitsComeFromTheStore(t *testing.T) {
	for _, c := range []struct {
		raw   string
		lease time.Duration
		good  string
		bad   string
	}{
		{"nats://host/E", 500 * time.Millisecond, "a/b", "a b"},
		{"kafka://host/topic?mode=neli", time.Second, "a b", strings.Repeat("k", 250)},
		{"s3://bucket/" + strings.Repeat(strings.Repeat("p", 195)+"/", 5), 2 * time.Second, "a b", strings.Repeat("k", 45)},
		{"s3://bucket", 2 * time.Second, strings.Repeat("k", 255), strings.Repeat("k", 256)},
	} {
		place, err := stores.Parse("--store", c.raw)
		if err != nil {
			t.Fatal(err)
		}
		store, err := place.Limits()
		if err != nil {
			t.Fatal(err)
		}
		b := driver.AbilitiesOf(store)
		if got := b.MinLease(); got != c.lease {
			t.Errorf("%s: least lease %v", c.raw, got)
		}
		if b.CheckKey(c.good) != nil || b.CheckKey(c.bad) == nil {
			t.Errorf("%s: keys %v and %v", c.raw, b.CheckKey(c.good), b.CheckKey(c.bad))
		}
		if _, err := store.Read(t.Context(), "a"); err == nil {
			t.Error("it reads")
		}
		if _, err := store.CompareAndSwap(t.Context(), "a", "", nil); err == nil {
			t.Error("it writes")
		}
	}
}
