package tenure_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tenure-go/tenure"
)

// termOf returns the term of a context, or nil.
func termOf(ctx context.Context) *tenure.Term {
	term, _ := tenure.FromContext(ctx)
	return term
}

// FromContext returns nil for a context that belongs to no term. Work that uses that nil term must
// learn that it may not act.
func TestNilTermIsOver(t *testing.T) {
	term, ok := tenure.FromContext(t.Context())
	if term != nil || ok {
		t.Fatal("a term out of nothing")
	}
	called := false
	for method, err := range map[string]error{
		"Err":     term.Err(),
		"Do":      term.Do(t.Context(), 0, func(context.Context) error { called = true; return nil }),
		"Resign":  term.Resign(t.Context()),
		"Context": context.Cause(term.Context()),
		"Soft":    context.Cause(term.Soft()),
	} {
		if !errors.Is(err, tenure.ErrLost) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if called {
		t.Error("Do calls its function")
	}
	if term.Token() != 0 || term.Election() != "" || term.Remaining() != 0 {
		t.Errorf("token %d of %q, %v remaining", term.Token(), term.Election(), term.Remaining())
	}
	select {
	case <-term.Renewed():
	default:
		t.Error("Renewed never returns a closed channel")
	}
}
