//go:build !(integration && unix)

package view_test

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // what people read is in local time
	os.Exit(m.Run())
}
