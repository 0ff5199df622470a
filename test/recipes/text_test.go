package recipes

import (
	"os"
	"path/filepath"
	"testing"
)

// root is the top of the repository.
const root = "../.."

// text reads a file of the repository.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
