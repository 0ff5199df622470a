// Package fault is about errors that are meant for people: what is wrong, which setting it is about, and what to do.
package fault

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The exit codes of every command.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
)

// Error is an error with a remedy. Several problems at once are an errors.Join in Err.
type Error struct {
	Err error
	// Hint says what to do about it; empty if nobody knows.
	Hint string
	// Code is the exit code; 0 counts as Failed.
	Code int
}

// New returns an error with a hint.
func New(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// OfUsage marks an error as a misuse of the command line.
func OfUsage(err error) *Error {
	return &Error{Err: err, Hint: "see tenure --help", Code: Usage}
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Code is the exit code that an error stands for.
func Code(err error) int {
	var f *Error
	switch {
	case err == nil:
		return Done
	case errors.As(err, &f) && f.Code != 0:
		return f.Code
	}
	return Failed
}

// Print writes one "error:" line for each problem and a "hint:" line if there is a remedy.
func Print(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "error: %s\n", strings.TrimRight(line, "\n"))
	}
	var f *Error
	if errors.As(err, &f) && f.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", f.Hint)
	}
}
