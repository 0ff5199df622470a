package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// shared is the cluster of this process's tests.
var shared struct {
	once sync.Once
	dir  string
	c    *Cluster
	err  error
}

// Shared returns one cluster from StartPartible for all tests of a package, with Tests as their
// TestMain. The end of each test waits until its faults are repaired, so these tests must not be
// parallel.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	if !machine.Supported {
		t.Fatal("servers cannot be paused on this system: run the test on Linux")
	}
	shared.once.Do(func() { shared.c, shared.err = begin() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		ctx, cancel := wait.Background()
		defer cancel()
		if err := shared.c.Mend(ctx); err != nil {
			t.Error(err)
			// Later tests fail at once instead of waiting again.
			shared.err = fmt.Errorf("the servers are not whole since %s: %w", t.Name(), err)
		}
	})
	return shared.c
}

func begin() (*Cluster, error) {
	var err error
	if shared.dir, err = os.MkdirTemp("", "natsd-"); err != nil {
		return nil, err
	}
	c, err := StartPartible(shared.dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := wait.Background()
	defer cancel()
	return c, c.Ready(ctx)
}

// Tests runs the tests of a package and then ends the cluster of Shared.
func Tests(m *testing.M) {
	Main()
	code := m.Run()
	End()
	os.Exit(code)
}

// End ends the cluster of Shared.
func End() {
	if shared.c != nil {
		shared.c.Kill()
	}
	_ = os.RemoveAll(shared.dir)
}

// Mend undoes the faults of servers and routes, and waits until the cluster is ready again.
func (c *Cluster) Mend(ctx context.Context) error {
	var errs []error
	for _, s := range c.Servers {
		c.Heal(s)
		if s.process.Runs() {
			errs = append(errs, s.Resume())
		} else {
			errs = append(errs, s.Start())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Ready(ctx)
}
