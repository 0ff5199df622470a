//go:build !(integration && unix)

package view_test

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // people read local time
	os.Exit(m.Run())
}
