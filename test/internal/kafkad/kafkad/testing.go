package kafkad

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// installPatience is the time limit for fetching the brokers' program and starting the brokers.
const installPatience = 10 * time.Minute

func up(dir string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	return Up(ctx, dir)
}

// shared is the cluster of this process's tests.
var shared struct {
	once sync.Once
	dir  string
	c    *Cluster
	err  error
}

// Shared starts one cluster for all tests of a package, with Main as their TestMain, and fails the
// test if a program is missing. Tests that call it have the build tag integration, because it
// fetches the brokers' program if that is missing. The end of each test waits until its faults are
// repaired. So tests with faults must not be parallel; parallel tests run after them.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "kafkad-"); shared.err == nil {
			shared.c, shared.err = up(shared.dir)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		shared.c.show(t)
		if err := shared.c.healed(); err != nil {
			t.Error(err)
			// Later tests fail at once instead of waiting again.
			shared.err = fmt.Errorf("the brokers are not whole since %s: %w", t.Name(), err)
		}
	})
	return shared.c
}

// healed calls Heal, and again if that fails: a broker ends by itself if the others are not up soon
// enough after its start.
func (c *Cluster) healed() (err error) {
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err = c.Heal(ctx)
		if cancel(); err == nil {
			return nil
		}
	}
	return err
}

// Main runs the tests of a package and then ends the cluster of Shared.
func Main(m *testing.M) {
	code := m.Run()
	End()
	os.Exit(code)
}

// End ends the cluster of Shared.
func End() {
	if shared.c != nil {
		_ = shared.c.End()
	}
	_ = os.RemoveAll(shared.dir)
}

// show logs the end of each broker's log, if the test failed.
func (c *Cluster) show(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, b := range c.brokers {
		t.Logf("%s:\n%s", b.Name, b.Said())
	}
}

// do repeats a request until it succeeds, and fails the test if it does not.
func (c *Cluster) do(t testing.TB, what string, ask func(context.Context, admin) error) {
	t.Helper()
	must(t, func(ctx context.Context) (none struct{}, err error) {
		return none, c.until(ctx, what, func(client admin) error { return ask(ctx, client) })
	})
}

func must[T any](t testing.TB, call func(context.Context) (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := call(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Leader returns the number of the broker that leads a partition. It waits until there is one.
func (c *Cluster) Leader(t testing.TB, topic string, partition int) int {
	t.Helper()
	return must(t, func(ctx context.Context) (int, error) { return c.leaderOf(ctx, topic, partition) })
}

// Coordinator is CoordinatorOf for tests.
func (c *Cluster) Coordinator(t testing.TB, group string) int {
	t.Helper()
	return must(t, func(ctx context.Context) (int, error) { return c.CoordinatorOf(ctx, group) })
}

// CreateTopic creates a topic with one partition, three copies, and these settings in addition to
// the brokers' own.
func (c *Cluster) CreateTopic(t testing.TB, topic string, settings map[string]string) {
	t.Helper()
	c.do(t, "create "+topic, func(ctx context.Context, client admin) error { return client.create(ctx, topic, settings) })
}

// DeleteTopic removes a topic.
func (c *Cluster) DeleteTopic(t testing.TB, topic string) {
	t.Helper()
	c.do(t, "delete "+topic, func(ctx context.Context, client admin) error { return client.delete(ctx, topic) })
}
