//go:build integration

package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/etcdkv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// TestEndedLogin: a follower sends nothing for so long that the cluster ends its login. Its next
// call must not fail, since it may be the one that claims. A replaced password ends a login, too.
func TestEndedLogin(t *testing.T) {
	t.Parallel()
	s := etcdd.One(t)
	config, replace := s.Member(t, "member", "one")
	var present atomic.Value
	present.Store("one")
	config.DialOptions = append(config.DialOptions, etcdkv.WithPassword(func(context.Context) string { return present.Load().(string) }))
	renewed := etcdd.OpenAt(t, config, s.Prefix)
	config.DialOptions = nil
	stale := etcdd.OpenAt(t, config, s.Prefix)

	ctx := wait.Context(t)
	v, err := renewed.CompareAndSwap(ctx, key, "", []byte("first"))
	rig.Must(t, err)
	for _, password := range []string{"two", "three"} {
		end := func() { present.Store(password); replace(password) }
		end()
		if v, err = renewed.CompareAndSwap(ctx, key, v, []byte("by "+password)); err != nil {
			t.Errorf("a write after the login ended: %v", err)
		}
		end()
		if _, err = renewed.Read(ctx, key); err != nil {
			t.Errorf("a read after the login ended: %v", err)
		}
	}
	if _, err = stale.Read(ctx, key); !errors.Is(err, driver.ErrDenied) || !errors.Is(err, etcdkv.ErrLogin) {
		t.Errorf("a read with the former password: %v", err)
	}
}
