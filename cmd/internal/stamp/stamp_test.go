package stamp_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// The clock must agree with package time on the length of an interval.
func TestNowAgreesWithPackageTime(t *testing.T) {
	outside := time.Now()
	first := stamp.Now()
	for stamp.Now().Sub(first) < 2*time.Millisecond {
	}
	if took := time.Since(outside); took < 2*time.Millisecond {
		t.Errorf("2 ms took %v", took)
	}
}

func TestSubAndAdd(t *testing.T) {
	if got := stamp.Time(5).Add(7); got != 12 || got.Sub(5) != 7 {
		t.Errorf("got %d", got)
	}
}
