//go:build integration

package overlay_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/overlay"
)

// TestWrite: the built program has both changes of one file. The source file is unchanged.
func TestWrite(t *testing.T) {
	top := module(t)
	list, err := overlay.Write(top, t.TempDir(), []overlay.Edit{
		{File: "cmd/main.go", Old: `"sound"`, New: `"broken"`},
		{File: "cmd/main.go", Old: `1)`, New: `2)`},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command("go", "run", "-overlay", list, "./cmd")
	run.Dir, run.Env = top, append(os.Environ(), "GOWORK=off")
	if out, err := run.CombinedOutput(); err != nil || string(out) != "broken 2\n" {
		t.Errorf("it said %q, %v", out, err)
	}
	if text, err := os.ReadFile(filepath.Join(top, "cmd/main.go")); err != nil || string(text) != source {
		t.Errorf("the source was changed: %q, %v", text, err)
	}
}
