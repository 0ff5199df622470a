package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// cells is a store in memory. A version is the number of a write, so it never recurs.
type cells struct {
	mu     sync.Mutex
	writes uint64
	state  map[string]driver.Entry
}

func (c *cells) Read(ctx context.Context, key string) (driver.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.state[key]
	e.Value = bytes.Clone(e.Value)
	return e, ctx.Err()
}

func (c *cells) CompareAndSwap(
	ctx context.Context, key string, prev driver.Version, value []byte,
) (driver.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if c.state[key].Version != prev {
		return "", driver.ErrConflict
	}
	c.writes++
	next := driver.Version(strconv.FormatUint(c.writes, 10))
	c.state[key] = driver.Entry{Value: bytes.Clone(value), Version: next, Floor: c.writes}
	return next, nil
}

// A store needs two methods. Package drivertest checks them.
func Example() {
	var store driver.Store = &cells{state: map[string]driver.Entry{}}
	ctx := context.Background()
	first, err := store.CompareAndSwap(ctx, "billing", "", []byte("a"))
	fmt.Println(first, err)
	_, err = store.CompareAndSwap(ctx, "billing", "", []byte("b"))
	fmt.Println(errors.Is(err, driver.ErrConflict))
	entry, err := store.Read(ctx, "billing")
	fmt.Println(string(entry.Value), entry.Version, err)
	// Output:
	// 1 <nil>
	// true
	// a 1 <nil>
}
