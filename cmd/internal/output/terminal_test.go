package output_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

func TestColorsOnlyOnATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if output.Colours(file) || output.Colours(&strings.Builder{}) {
		t.Error("a file or a builder has colours")
	}
	if output.Screen(file) || output.Screen(&strings.Builder{}) || output.Keys(file) || output.Keys(nil) {
		t.Error("a file or a builder is a screen, or has keys")
	}
}
