// Package fault is for errors that people read: the problem, the setting that it is about, and the
// remedy.
package fault

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

// The exit codes of every command.
const (
	Done     = 0
	Failed   = 1
	Usage    = 2
	NoLeader = 3
)

// Error is an error with a remedy. Several problems at once are an errors.Join in Err.
type Error struct {
	Err error
	// Hint is the remedy; empty if none is known.
	Hint string
	// Code is the exit code; 0 counts as Failed.
	Code int
	// Passing says that waiting may mend it, such as for a server that is being restarted.
	Passing bool

	inHelp bool // the hint is the help of the command
}

// New returns an error with a hint.
func New(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Passing returns one that waiting may mend.
func Passing(hint, format string, args ...any) *Error {
	f := New(hint, format, args...)
	f.Passing = true
	return f
}

// OfUsage marks an error as a misuse of the command line. Its hint is the help of the command.
func OfUsage(err error) *Error { return &Error{Err: err, Code: Usage, inHelp: true} }

// WithHelp gives a misuse of a command the hint to see the command's help.
func WithHelp(command string, err error) error {
	var f *Error
	if !errors.As(err, &f) || !f.inHelp {
		return err
	}
	hinted := *f
	hinted.Err, hinted.Hint, hinted.inHelp = err, "see "+command+" --help", false
	return &hinted
}

// OfValue marks an error as a setting with a wrong value. It keeps the hint and, if there is one,
// the code. Nil stays nil.
func OfValue(err error) error {
	if err == nil {
		return nil
	}
	var f *Error
	wrong := Error{Err: err}
	if errors.As(err, &f) {
		wrong = *f
	}
	wrong.Err, wrong.Passing = err, false
	if wrong.Code == 0 {
		wrong.Code = Usage
	}
	return &wrong
}

// Behind returns the same error with a text in front.
func (e *Error) Behind(text string) *Error {
	behind := *e
	behind.Err = fmt.Errorf("%s: %w", text, e.Err)
	return &behind
}

// Exit is an exit code that needs no words.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Err }

// Code is the exit code that an error stands for.
func Code(err error) int {
	var f *Error
	var e Exit
	switch {
	case err == nil:
		return Done
	case errors.As(err, &e):
		return int(e)
	case errors.As(err, &f) && f.Code != 0:
		return f.Code
	}
	return Failed
}

// Passes reports whether waiting may mend an error.
func Passes(err error) bool {
	var f *Error
	return errors.As(err, &f) && f.Passing
}

// Print writes one "error:" line for each problem and a "hint:" line if there is a remedy.
func Print(w io.Writer, err error) {
	var e Exit
	if errors.As(err, &e) {
		return
	}
	Tell(w, "error", err)
}

// Tell does so for a message that is no error yet, under another word. Servers and records may have
// put anything into the text.
func Tell(w io.Writer, word string, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "%s: %s\n", word, output.Plain(strings.TrimRight(line, "\n")))
	}
	var f *Error
	if errors.As(err, &f) && f.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", output.Plain(f.Hint))
	}
}
