// Package abandon gives up calls of client libraries when their contexts end. Use it in adapters: a
// call of an adapter must end with its context (see package driver), but a call of a client library
// may go on. Some libraries hold a lock during a handshake with a silent server, some take no
// context at all.
package abandon

import (
	"context"
	"errors"
	"sync/atomic"
)

// MaxAbandoned is how many abandoned calls of one Calls may still be under way.
const MaxAbandoned = 256

// ErrStuck reports that a call was not begun, because MaxAbandoned abandoned calls still hang.
var ErrStuck = errors.New("the store hangs: too many calls that were given up are still under way")

// Calls counts the abandoned calls to one client. Its zero value is ready for use.
type Calls struct{ abandoned atomic.Int64 }

// Run returns the result of call, or the context's error as soon as the context has ended. An
// abandoned call goes on in its own goroutine until it returns. If it returns without an error,
// undo is called with its value. Run does not begin the call if the context has ended before or if
// too many calls hang: then it returns the context's error or ErrStuck.
func Run[T any](ctx context.Context, c *Calls, call func() (T, error), undo func(T)) (T, error) {
	var nothing T
	if err := ctx.Err(); err != nil {
		return nothing, err
	}
	if c.abandoned.Load() >= MaxAbandoned {
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

// NoUndo is the undo of calls with a value that needs no cleanup.
func NoUndo[T any](T) {}
