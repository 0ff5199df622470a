package tenure_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheExample keeps the README's code the one that is compiled and run.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(source), "func Example() {\n")
	example, _, _ = strings.Cut(example, "\t// Output:")
	example = strings.TrimPrefix(strings.ReplaceAll(example, "\n\t", "\n"), "\t")
	if !strings.Contains(string(readme), "```go\n"+example+"```") {
		t.Errorf("the README does not show the Example:\n%s", example)
	}
}
