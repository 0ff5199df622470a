package demo

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/stamp"
)

// recklessEnv makes the test binary a candidate that breaks the rules.
const recklessEnv = "TENURE_TEST_RECKLESS"

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC // what people read is in local time
	if os.Getenv(recklessEnv) != "" {
		if err := reckless(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// golden compares with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// noon is a moment on both clocks.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(millis int) stamp.Time { return stamp.Time(time.Duration(millis) * time.Millisecond) }

func wall(millis int) time.Time { return noon.Add(time.Duration(millis) * time.Millisecond) }
