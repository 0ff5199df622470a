//go:build integration

package stores

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/reign"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// eachClients runs a test on the rigs that know clients.
func eachClients(t *testing.T, test func(t *testing.T, s rig.Clients)) {
	apart(t, func(t *testing.T, r rig.Rig) {
		if r.SameClients {
			t.Skip("another rig has these clients")
		}
		s, ok := r.Start(t, true).(rig.Clients)
		if !ok {
			t.Skip("the rig knows no clients")
		}
		test(t, s)
	})
}

// TestMistakes: a client with a mistake gets an error that names the remedy and shows no secret,
// from each call that cannot work. Nothing is overwritten.
func TestMistakes(t *testing.T) {
	eachClients(t, func(t *testing.T, s rig.Clients) { try(t, s, s.Mistakes(t)) })
}

// TestRights: the documented rights are enough, and none is unnecessary. With them a candidate
// leads, and an observer sees it. A standby that may not write reports this meanwhile.
func TestRights(t *testing.T) {
	eachClients(t, func(t *testing.T, s rig.Clients) {
		clients := s.Rights(t)
		if try(t, s, clients); t.Failed() {
			return
		}
		named := func(name string) driver.Store {
			i := slices.IndexFunc(clients, func(c rig.Client) bool { return c.Name == name })
			if i < 0 {
				t.Skip("the rig has no " + name)
			}
			store, err := clients[i].Open(t)
			rig.Must(t, err)
			return store
		}
		observer := named("observer")
		r := reign.New(t, "billing", asking.ByTerm)
		r.Join(named("candidate"), nil, tenure.Config{ID: "first", Lease: brief})
		r.Leader(0)
		standby := r.Join(observer, nil, tenure.Config{ID: "standby", Lease: brief})
		status, err := standby.Wait(wait.Context(t), func(s tenure.Status) bool { return s.WriteErr != nil && s.Leader.ID == "first" })
		if err != nil || !errors.Is(status.WriteErr, driver.ErrDenied) {
			t.Errorf("a standby that may not write: got %v, %v", status.WriteErr, err)
		}
	})
}

func try(t *testing.T, s rig.Site, clients []rig.Client) {
	site, _ := s.Open(t, 0)
	for i, c := range clients {
		t.Run(c.Name, func(t *testing.T) {
			owner, key := c.Owner, fmt.Sprint("update", i)
			if owner == nil {
				owner = site
			}
			now, err := owner.Read(wait.Context(t), key)
			rig.Must(t, err)
			version, err := owner.CompareAndSwap(wait.Context(t), key, now.Version, []byte("precious"))
			rig.Must(t, err)
			store, err := c.Open(t)
			judge(t, c, "open", err)
			if err != nil {
				return
			}
			updated := false
			// A store may need the right to read only for a version that it has not seen. So the
			// order counts: the watch, which shows the version, comes last.
			all := calls(store, key, version)
			for _, call := range slices.Sorted(maps.Keys(all)) {
				// A server may answer before it knows that a right was taken away. A Kafka broker
				// hears of it late if the brokers elect a controller just then.
				fails := strings.Contains(c.Fails, call)
				wait.Within(wait.Left(), func() bool {
					err = all[call](wait.Context(t))
					return !fails || err != nil && !errors.Is(err, driver.ErrConflict)
				})
				judge(t, c, call, err)
				updated = updated || call == "update" && err == nil
			}
			if e, err := owner.Read(wait.Context(t), key); err != nil || !updated && string(e.Value) != "precious" {
				t.Errorf("the cell holds %q now (%v)", e.Value, err)
			}
		})
	}
}

// calls are those of a client, to a cell that has a version and to one that is absent.
func calls(s driver.Store, key string, version driver.Version) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"read": func(ctx context.Context) error { _, err := s.Read(ctx, key); return err },
		"insert": func(ctx context.Context) error {
			_, err := s.CompareAndSwap(ctx, "insert-"+key, "", []byte("created"))
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := s.CompareAndSwap(ctx, key, version, []byte("swapped"))
			return err
		},
	}
	able := driver.AbilitiesOf(s)
	if able.Watcher != nil {
		all["watch"] = func(ctx context.Context) error {
			stop, err := able.Watcher.Watch(ctx, key, func(driver.Entry) {})
			if err == nil {
				stop()
			}
			return err
		}
	}
	if able.Inspector != nil {
		all["rights"] = func(ctx context.Context) error { return able.CheckRights(ctx, key) }
		all["inspect"] = func(ctx context.Context) error { _, err := able.Inspect(ctx, 15*time.Second); return err }
	}
	return all
}

func judge(t *testing.T, c rig.Client, call string, err error) {
	t.Helper()
	conflict := errors.Is(err, driver.ErrConflict)
	want, ok := c.Says[call]
	if !ok {
		want = c.Says[""]
	}
	switch {
	case !strings.Contains(c.Fails, call):
		if err != nil && call != "inspect" && call != "watch" && !(conflict && c.Elsewhere) {
			t.Errorf("%s: %v", call, err)
		}
	case err == nil || conflict || errors.Is(err, driver.ErrDenied) != c.Denied || !strings.Contains(err.Error(), want):
		t.Errorf("%s: got %v, want %q, and that it wraps driver.ErrDenied: %v", call, err, want, c.Denied)
	case strings.Contains(err.Error(), rig.Secret):
		t.Errorf("%s: %v shows the password", call, err)
	}
}

// TestRotation: candidates go on when their credentials are replaced.
func TestRotation(t *testing.T) {
	eachClients(t, func(t *testing.T, s rig.Clients) {
		for _, p := range s.Rotations(t) {
			t.Run(p.Name, p.Run)
		}
	})
}
