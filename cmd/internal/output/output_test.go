package output_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

func TestLinesContainNoTerminalControls(t *testing.T) {
	for text, want := range map[string]string{
		"nœud \"1\"":     `"nœud \"1\""`,
		"\x1b[31m\r\n":   `"\u001b[31m\r\n"`,
		"\x7f\u009b31m":  `"\u007f\u009b31m"`,
		"\u202ex\u2066":  `"\u202ex\u2066"`,
		"\U000e0041":     `"\udb40\udc41"`,
		"\xff":           `"\ufffd"`,
		"\u00a0\u2028":   `"\u00a0\u2028"`,
		"日本語 \U0001f600": `"日本語 \U0001f600"`,
	} {
		var out strings.Builder
		output.JSON(&out, text)
		if got := strings.ReplaceAll(out.String(), "\U0001f600", `\U0001f600`); got != want+"\n" {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q became %q, %v", text, back, err)
		}
	}
}

func TestEscapingKeepsLengths(t *testing.T) {
	var out strings.Builder
	slog.New(slog.NewJSONHandler(output.Escaping{Writer: &out}, nil)).Info("seen", "leader", "\u202ex")
	if got := out.String(); !strings.Contains(got, `"leader":"\u202ex"`) || !strings.HasSuffix(got, "}\n") {
		t.Errorf("got %s", got)
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{"nœud \"1\"": "nœud \"1\"", "a\nb\tc": "a b c", "\x1b[31mred": "·[31mred", "\u202ex": "·x"} {
		if got := output.Plain(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestColorsOnlyOnATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	must.OK(t, err)
	defer func() { _ = file.Close() }()
	if output.Colours(file) || output.Colours(&strings.Builder{}) {
		t.Error("a file or a builder has colours")
	}
	if output.Screen(file) || output.Screen(&strings.Builder{}) || output.Keys(file) || output.Keys(nil) {
		t.Error("a file or a builder is a screen, or has keys")
	}
}
