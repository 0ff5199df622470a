//go:build !(integration && unix)

package view_test

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the view shows local time
	os.Exit(m.Run())
}
