package terminal_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure/internal/terminal"
)

func TestNoColoursButOnATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if terminal.Colours(file) || terminal.Colours(&strings.Builder{}) {
		t.Error("a file or a builder has colours")
	}
	if terminal.Screen(file) || terminal.Screen(&strings.Builder{}) || terminal.Keys(file) || terminal.Keys(nil) {
		t.Error("a file or a builder is a screen, or has keys")
	}
}
