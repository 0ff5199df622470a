package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

// NewLogger returns a logger that writes text, or with json one object per line. Durations are
// written as 15s in both. Credentials of URLs in errors are hidden: see fault.Masked.
func NewLogger(out io.Writer, level slog.Leveler, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch value := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(fault.Masked(Cause(value)))
		case time.Duration:
			a.Value = slog.StringValue(value.String())
		}
		return a
	}}
	if json {
		return slog.New(slog.NewJSONHandler(output.Escaping{Writer: out}, o))
	}
	return slog.New(slog.NewTextHandler(out, o))
}
