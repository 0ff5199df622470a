// Package aside makes calls of client libraries end with their contexts. It is for people who write adapters, whose calls
// must (see package driver), over libraries whose calls do not: some hold a lock while they shake hands with a server that
// says nothing, some take no context at all.
package aside

import (
	"context"
	"errors"
	"sync/atomic"
)

// Most is how many calls of one Calls may still be under way whose callers have left.
const Most = 256

// ErrStuck says that a call was not begun, because Most others that were given up still hang.
var ErrStuck = errors.New("the store hangs: too many calls that were given up are still under way")

// Calls counts the calls to one client that were given up. Its zero value is ready for use.
type Calls struct{ abandoned atomic.Int64 }

// Run returns what call does, or the context's error as soon as the context has ended. An abandoned call goes on, in a
// goroutine of its own, until it sees that for itself; undo is then given what it made, unless it failed.
// Run returns ErrStuck, or the error of a context that has ended before, without having begun the call.
func Run[T any](ctx context.Context, c *Calls, call func() (T, error), undo func(T)) (T, error) {
	var nothing T
	if err := ctx.Err(); err != nil {
		return nothing, err
	}
	if c.abandoned.Load() >= Most {
		return nothing, ErrStuck
	}
	type result struct {
		value T
		err   error
	}
	done, left := make(chan result), make(chan struct{})
	go func() {
		value, err := call()
		select {
		case done <- result{value, err}:
		case <-left:
			c.abandoned.Add(-1)
			if err == nil {
				undo(value)
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		c.abandoned.Add(1)
		close(left)
		return nothing, ctx.Err()
	}
}

// Forget is the undo of calls that make nothing.
func Forget[T any](T) {}
