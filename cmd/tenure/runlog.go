//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"time"
)

// storeNamer adds the store to warnings and errors: a store that does not answer is one of many
// where the lines of many processes come together.
type storeNamer struct {
	slog.Handler
	store string
}

// Handle passes on a record.
func (n storeNamer) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		r = r.Clone()
		r.AddAttrs(slog.String("store", n.store))
	}
	return n.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds the store, too.
func (n storeNamer) WithAttrs(all []slog.Attr) slog.Handler {
	return storeNamer{n.Handler.WithAttrs(all), n.store}
}

// WithGroup returns a handler that adds the store, too.
func (n storeNamer) WithGroup(name string) slog.Handler {
	return storeNamer{n.Handler.WithGroup(name), n.store}
}

// patientLog passes lines on to a writer that may hang, such as a pipe that no process reads. It
// drops lines and does not wait: a log must not cost a lease, or delay a signal.
type patientLog struct {
	out    io.Writer
	lines  chan []byte
	ending chan struct{}
	ended  chan struct{}
}

const (
	logLines = 1024 // the number of lines that may wait
	logFlush = time.Second
)

func newPatientLog(out io.Writer) *patientLog {
	l := &patientLog{out: out, lines: make(chan []byte, logLines), ending: make(chan struct{}), ended: make(chan struct{})}
	go l.pass()
	return l
}

// Write takes one line.
func (l *patientLog) Write(line []byte) (int, error) {
	select {
	case l.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

func (l *patientLog) pass() {
	defer close(l.ended)
	for {
		select {
		case line := <-l.lines:
			_, _ = l.out.Write(line)
		case <-l.ending:
			l.rest()
			return
		}
	}
}

func (l *patientLog) rest() {
	for {
		select {
		case line := <-l.lines:
			_, _ = l.out.Write(line)
		default:
			return
		}
	}
}

// flush waits until the lines are written, for logFlush at most. Later lines are lost.
func (l *patientLog) flush() {
	close(l.ending)
	select {
	case <-l.ended:
	case <-time.After(logFlush):
	}
}
