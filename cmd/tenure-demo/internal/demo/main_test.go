//go:build !integration

package demo

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // people read local time
	os.Exit(m.Run())
}
