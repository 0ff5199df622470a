package tenure_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheSample keeps the README's code the one that the tests of natskv compile and
// run.
func TestReadmeShowsTheSample(t *testing.T) {
	const folder = "driver/natskv/natstest"
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this is the core module alone, without the drivers")
	}
	source := read(t, folder+"/conformance_test.go")
	_, sample, _ := strings.Cut(source, "// The README begins here.\n\t")
	sample, _, ok := strings.Cut(sample, "\n}\n")
	sample = strings.ReplaceAll(sample, "\n\t", "\n")
	if !ok || !strings.Contains(read(t, "README.md"), "```go\n"+sample+"\n```") {
		t.Errorf("the README does not show the sample:\n%s", sample)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
