//go:build integration

package s3lect_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run side by side than there are processors: they wait far more than they
// work.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
