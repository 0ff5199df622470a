package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

var _ driver.Presence = (*Polled)(nil)

// announced is a candidate that answers.
type announced struct {
	key string
	who func() []byte
}

// Announce answers questions about the key until stop is called. The errors are those of CheckKey
// and, if the context has ended, the context's.
func (p *Polled) Announce(ctx context.Context, key string, who func() []byte) (stop func(), err error) {
	if err := p.admit(ctx, key); err != nil {
		return nil, err
	}
	a := &announced{key, who}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.present = append(p.present, a)
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.present = slices.DeleteFunc(slices.Clone(p.present), func(one *announced) bool { return one == a })
	}), nil
}

// Candidates returns the answers of the candidates of a key, or of all if it is empty. The error is
// the context's if it has ended.
func (p *Polled) Candidates(ctx context.Context, key string) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	present := p.present
	p.mu.Unlock()
	var all [][]byte
	for _, a := range present {
		if key != "" && a.key != key {
			continue
		}
		if one := a.who(); len(one) > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}
