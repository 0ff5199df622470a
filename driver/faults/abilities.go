package faults

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Abilities returns those of the store inside. Watches and pushes are under faults, and a partition
// cuts off all other calls that would reach a server.
func (c *core) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(c.inner)
	cut := severed{c, a}
	if a.Watcher != nil {
		a.Watcher = watcher{c, a.Watcher}
	}
	if a.Inspector != nil {
		a.Inspector = cut
	}
	if a.RightsChecker != nil {
		a.RightsChecker = cut
	}
	if a.Lister != nil {
		a.Lister = cut
	}
	if a.Presence != nil {
		a.Presence = cut
	}
	return a
}

// severed has the abilities of the store inside whose calls hang in a partition.
type severed struct {
	c     *core
	inner driver.Abilities
}

// reach hangs in a partition until the context ends.
func (s severed) reach(ctx context.Context) error {
	if s.c.partitioned.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s severed) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.inner.Inspector.Inspect(ctx, lease)
}

func (s severed) CheckRights(ctx context.Context, key string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	return s.inner.RightsChecker.CheckRights(ctx, key)
}

func (s severed) Keys(ctx context.Context) ([]string, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.inner.Lister.Keys(ctx)
}

// Announce passes in a partition, as without a connection. No question arrives then.
func (s severed) Announce(ctx context.Context, key string, who func() []byte) (stop func(), err error) {
	return s.inner.Presence.Announce(ctx, key, func() []byte {
		if s.c.partitioned.Load() {
			return nil
		}
		return who()
	})
}

func (s severed) Candidates(ctx context.Context, key string) ([][]byte, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.inner.Presence.Candidates(ctx, key)
}
