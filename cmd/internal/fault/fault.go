// Package fault holds the errors that commands print: the problem with its setting, and the remedy
// as a hint.
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
	Done         = 0
	Failed       = 1
	Usage        = 2
	NoLeader     = 3
	NotConfirmed = 4 // a leader was not seen to renew, or a store is not known to be sound
	UnsafeStore  = 5
)

// Error is an error with a remedy. Several problems at once are an errors.Join in Err.
type Error struct {
	Err error
	// Hint is the remedy; empty if none is known.
	Hint string
	// Code is the exit code; 0 counts as Failed.
	Code int
	// Passing reports that waiting may help, such as for a server that is being restarted.
	Passing bool

	inHelp bool // the hint shall name the help of the command
}

// New returns an error with a hint.
func New(hint, format string, args ...any) *Error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Passing returns an error that may go away by waiting.
func Passing(hint, format string, args ...any) *Error {
	f := New(hint, format, args...)
	f.Passing = true
	return f
}

// OfUsage marks an error as a wrong command line. Its hint names the help of the command.
func OfUsage(err error) *Error { return &Error{Err: err, Code: Usage, inHelp: true} }

// WithHelp adds the hint to see the command's help, if the error is from OfUsage.
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

// Exit is an exit code for which nothing is printed.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the exit code for an error.
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

// Passes reports whether an error may go away by waiting.
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

// Tell prints the same for a message that is not an error yet, with another word in front. It makes
// the text safe for a terminal, since parts of it may come from servers and records, and masks
// URLs.
func Tell(w io.Writer, word string, err error) {
	for line := range strings.Lines(Masked(err.Error())) {
		fmt.Fprintf(w, "%s: %s\n", word, output.Plain(strings.TrimRight(line, "\n")))
	}
	var f *Error
	if errors.As(err, &f) && f.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", output.Plain(f.Hint))
	}
}
