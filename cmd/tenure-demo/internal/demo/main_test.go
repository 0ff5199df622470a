//go:build !integration

package demo

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the lines show local time
	os.Exit(m.Run())
}
