package memory

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
)

const (
	// minLease allows for timers that fire late, the only delay of this store.
	minLease = 50 * time.Millisecond
	maxKey   = 512
)

// MinLease returns 50 ms.
func (p *Polled) MinLease() time.Duration { return minLease }

// CheckKey returns an error unless the key is valid UTF-8 of 1 to 512 bytes.
func (p *Polled) CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("memory: the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("memory: a key of %d bytes is longer than %d", len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("memory: key %q is not valid UTF-8", key)
	}
	return nil
}

// Inspect returns one piece of advice: that the store lives in one process. The lease makes no
// difference. The error is the context's, if it has ended.
func (p *Polled) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return []driver.Finding{{
		Severity: driver.Advice,
		Setting:  "process",
		Problem:  "only candidates in this process take part, and everything is forgotten when it ends",
		Remedy:   "use a store that all candidates reach",
	}}, nil
}
