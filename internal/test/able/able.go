// Package able shows whether a wrapper of a store keeps the abilities of the store inside.
package able

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Store has every ability of package driver, each with an answer of its own.
type Store struct{ driver.Store }

// MinLease returns 7 s.
func (Store) MinLease() time.Duration { return 7 * time.Second }

// CheckKey refuses every key.
func (Store) CheckKey(string) error { return errors.New("no key") }

// MaxLease returns 9 s.
func (Store) MaxLease() time.Duration { return 9 * time.Second }

// Incarnation returns a name.
func (Store) Incarnation(func(uint64) time.Duration) string { return "a name" }

// Watch pushes one entry.
func (Store) Watch(_ context.Context, _ string, see func(driver.Entry)) (func(), error) {
	see(driver.Entry{Value: []byte("a push")})
	return func() {}, nil
}

// Inspect returns one finding.
func (Store) Inspect(context.Context, time.Duration) ([]driver.Finding, error) {
	return []driver.Finding{{Setting: "a setting"}}, nil
}

// CheckRights returns an error.
func (Store) CheckRights(context.Context, string) error { return errors.New("no right") }

// Keys returns one key.
func (Store) Keys(context.Context) ([]string, error) { return []string{"a key"}, nil }

// Announce returns an error.
func (Store) Announce(context.Context, string, func() []byte) (func(), error) {
	return nil, errors.New("no announcement")
}

// Candidates returns one answer.
func (Store) Candidates(context.Context, string) ([][]byte, error) {
	return [][]byte{[]byte("a candidate")}, nil
}

// Answers calls each ability of a store and returns the answers by the names of the interfaces.
func Answers(ctx context.Context, s driver.Store) map[string]string {
	a, all := driver.AbilitiesOf(s), map[string]string{}
	if a.Watcher != nil {
		_, err := a.Watcher.Watch(ctx, "k", func(e driver.Entry) { all["Watcher"] += string(e.Value) })
		all["Watcher"] += fmt.Sprint(err)
	}
	if a.Peers != nil {
		all["Peers"] = a.Peers.Incarnation(func(uint64) time.Duration { return 0 })
	}
	if a.Bounded != nil {
		all["Bounded"] = fmt.Sprint(a.Bounded.MinLease(), a.Bounded.MaxLease(), a.Bounded.CheckKey("k"))
	}
	if a.Inspector != nil {
		keys, failed := a.Inspector.Keys(ctx)
		findings, err := a.Inspector.Inspect(ctx, time.Second)
		all["Inspector"] = fmt.Sprint(keys, failed, findings, err, a.Inspector.CheckRights(ctx, "k"))
	}
	if a.Presence != nil {
		_, err := a.Presence.Announce(ctx, "k", func() []byte { return nil })
		found, failed := a.Presence.Candidates(ctx, "k")
		all["Presence"] = fmt.Sprintf("%v %s %v", err, found, failed)
	}
	return all
}
