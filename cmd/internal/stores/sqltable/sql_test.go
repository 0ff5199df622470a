package sqltable_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
	"github.com/tenure-go/tenure/driver"
)

func TestSQLiteFileIsCreatedOnlyOnRequest(t *testing.T) {
	p := places.Parse(t, "sqlite:"+filepath.Join(t.TempDir(), "a b.db"))
	_, err := stores.Connect(t.Context(), p, "k", stores.Options{}, stores.Patience{})
	if err == nil || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("no file: got %v", err)
	}
	for _, o := range []stores.Options{{Create: true}, {}} {
		s, err := stores.Connect(t.Context(), p, "k", o, stores.Patience{})
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if _, err := s.Driver.Read(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if found, err := s.Inspect(t.Context(), time.Second); err != nil || len(found) != 0 {
			t.Errorf("got findings %v, %v", found, err)
		}
		if b, ok := s.Driver.(driver.Bounded); !ok || b.MinLease() != time.Second {
			t.Error("the shortest lease is not that of the driver")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
