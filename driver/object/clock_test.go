package object_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/object"
)

func TestAtClock(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	if found := object.AtClock(object.Floor(now.Add(-4*time.Minute)), now, ""); found != nil {
		t.Error(found)
	}
	if found := object.AtClock(object.Floor(now.Add(-time.Hour)), now, ""); len(found) != 1 || found[0].Setting != "clock" {
		t.Error(found)
	}
	if found := object.AtClock(object.Floor(time.Time{}), now, ""); len(found) != 1 || found[0].Setting != "Date" {
		t.Error(found)
	}
}
