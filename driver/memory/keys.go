package memory

import (
	"context"
	"slices"
)

// Keys returns the keys of all cells that hold a value. The error is the context's if it has ended.
func (p *Polled) Keys(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for key, c := range p.cells {
		if len(c.value) > 0 {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all, nil
}
