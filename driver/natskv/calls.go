package natskv

import (
	"context"
	"errors"
	"sync/atomic"
)

// maxAbandoned is how many calls may still be under way whose callers have left.
const maxAbandoned = 1024

// errStuck says that a call was not begun because too many others hang.
var errStuck = errors.New("the connection hangs: too many calls that were given up are still under way")

// calls makes calls end with their contexts. The client library does not see to that: while it shakes hands with a server
// that accepts a connection and then says nothing, it holds a lock that every call needs, for up to nats.Timeout (2 s), and
// the older API takes no context at all.
type calls struct{ abandoned atomic.Int64 }

// run returns what call does, or the context's error as soon as the context has ended. An abandoned call goes on until it
// sees that for itself; undo is then given what it made, unless it failed.
func run[T any](ctx context.Context, c *calls, call func() (T, error), undo func(T)) (T, error) {
	var nothing T
	if err := ctx.Err(); err != nil {
		return nothing, err
	}
	if c.abandoned.Load() >= maxAbandoned {
		return nothing, errStuck
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

// forget is the undo of calls that make nothing.
func forget[T any](T) {}
