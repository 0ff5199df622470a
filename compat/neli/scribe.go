package neli

import (
	"context"
	"log/slog"
	"strings"
)

// Loggers is the part of a Scribe that FromScribe needs: a function for each level, of type L.
type Loggers[L ~func(format string, args ...interface{})] interface {
	T() L
	D() L
	I() L
	W() L
	E() L
}

// FromScribe returns a logger that writes to a Scribe of goNELI's (package scribe of libstdgo), or
// to anything else with its five methods:
//
//	Scribe: neli.FromScribe(scribe.New(scribelogrus.Bind())),
func FromScribe[L ~func(format string, args ...interface{})](s Loggers[L]) *slog.Logger {
	return slog.New(&scribeHandler{pick: func(level slog.Level) func(string, ...interface{}) {
		switch {
		case level < slog.LevelDebug:
			return s.T()
		case level < slog.LevelInfo:
			return s.D()
		case level < slog.LevelWarn:
			return s.I()
		case level < slog.LevelError:
			return s.W()
		}
		return s.E()
	}})
}

// scribeHandler is a slog.Handler that writes one line: the message, then the attributes.
type scribeHandler struct {
	pick   func(slog.Level) func(string, ...interface{})
	prefix string // before the names of attributes
	before string // the attributes of the logger, as text
}

func (*scribeHandler) Enabled(context.Context, slog.Level) bool { return true }

func (s *scribeHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message + s.before)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString(" " + s.prefix + a.String())
		return true
	})
	s.pick(r.Level)("%s", line.String())
	return nil
}

func (s *scribeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *s
	for _, a := range attrs {
		more.before += " " + s.prefix + a.String()
	}
	return &more
}

func (s *scribeHandler) WithGroup(name string) slog.Handler {
	more := *s
	more.prefix += name + "."
	return &more
}
