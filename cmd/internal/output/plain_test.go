package output_test

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{"nœud \"1\"": "nœud \"1\"", "a\nb\tc": "a b c", "\x1b[31mred": "·[31mred", "\u202ex": "·x"} {
		if got := output.Plain(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
