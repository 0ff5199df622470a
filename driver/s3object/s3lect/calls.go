package s3lect

import (
	"context"
	"errors"
	"sync/atomic"
)

// maxAbandoned is how many calls of a storage may still be under way whose callers have left.
const maxAbandoned = 64

var errStuck = errors.New("the storage hangs: too many calls that were given up are still under way")

// calls makes calls end with their contexts, whatever somebody's storage does with its own.
type calls struct{ abandoned atomic.Int64 }

// run returns what call does, or the context's error as soon as the context has ended. An abandoned call goes on until it
// sees that for itself.
func run[T any](ctx context.Context, c *calls, call func() (T, error)) (T, error) {
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
