//go:build integration

package etcd

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/rig"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestInspect: settings that stop elections, or make them unsafe, are found.
func TestInspect(t *testing.T) {
	t.Parallel()
	p, other := start(t), start(t)
	inspect := func(endpoints ...string) []driver.Finding {
		found, err := etcdd.OpenAt(t, etcdd.Config(endpoints...), p.Prefix).Inspect(wait.Context(t), 15*time.Second)
		rig.Must(t, err)
		return found
	}
	requires := func(found []driver.Finding, severity driver.Severity, problem string) {
		t.Helper()
		if !slices.ContainsFunc(found, func(f driver.Finding) bool {
			return f.Severity == severity && strings.Contains(f.Problem, problem) && f.Remedy != ""
		}) {
			t.Errorf("no finding of %v says %q: %v", severity, problem, found)
		}
	}
	own := p.Addresses()[0]
	alone := inspect(own)
	requires(alone, driver.Advice, "the one member is down")
	if len(alone) != 1 {
		t.Errorf("a cluster of one member without a mistake: %v", alone)
	}
	requires(inspect(own, other.Addresses()[0]), driver.Unsafe, "members may lead in both")
	requires(inspect(own, "127.0.0.1:9"), driver.Warning, "does not answer")
	p.Full(t)
	requires(inspect(own), driver.Unsafe, "NOSPACE")
}

// TestCorruptAlarm: a cluster with this alarm answers reads and refuses writes.
func TestCorruptAlarm(t *testing.T) {
	t.Parallel()
	p := start(t)
	ctx := wait.Context(t)
	v, err := p.store.CompareAndSwap(ctx, key, "", []byte("first"))
	rig.Must(t, err)
	p.Alarm(t, pb.AlarmType_CORRUPT)
	_, err = p.store.CompareAndSwap(ctx, key, v, []byte("second"))
	if err == nil || errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), "corrupt cluster") {
		t.Errorf("the write: %v", err)
	}
	if e, err := p.store.Read(ctx, key); err != nil || string(e.Value) != "first" {
		t.Errorf("the read: %q, %v", e.Value, err)
	}
}
