// Package must stops tests that cannot go on.
package must

import (
	"flag"
	"os"
	"testing"
)

// OK stops the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Write writes a file that only its owner may read.
func Write(t testing.TB, file, text string) {
	t.Helper()
	OK(t, os.WriteFile(file, []byte(text), 0o600))
}

var update = flag.Bool("update", false, "write the golden files")

// Golden checks that a text is the same as in a file. With -update it writes the file.
func Golden(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	OK(t, err)
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}
