package driver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Abilities holds the optional interfaces of a store. A nil field is an ability that the store does
// not have. The methods are those of Bounded and Inspector, and answer for a store that is neither.
type Abilities struct {
	Watcher   Watcher
	Peers     Peers
	Bounded   Bounded
	Inspector Inspector
	Presence  Presence
}

// Wrapper is a Store around another one, such as one that counts calls or injects faults. For each
// ability of the inner store it decides whether callers use that of the inner store directly, use
// the wrapper's instead, or see none:
//
//	func (w *wrapper) Abilities() driver.Abilities {
//		a := driver.AbilitiesOf(w.inner) // keeps what it does not name, also later abilities
//		if a.Watcher != nil {
//			a.Watcher = delayed{w, a.Watcher} // pushes pass through the wrapper
//		}
//		a.Presence = nil // hidden
//		return a
//	}
//
// A wrapper that changes or judges what is read must replace or hide the Watcher, because pushes of
// the inner store go past its Read. A wrapper without this method has only those abilities that it
// implements itself.
type Wrapper interface {
	Store
	// Abilities returns the abilities of this store. It takes no time, and the result is the same
	// for as long as the store lives.
	Abilities() Abilities
}

// AbilitiesOf returns the abilities of a store: what its method Abilities returns if it is a
// Wrapper, and otherwise the optional interfaces that it implements. Ask for an ability in this
// way, and not by a type assertion, which does not see what a Wrapper passes on or hides.
func AbilitiesOf(s Store) (a Abilities) {
	if w, ok := s.(Wrapper); ok {
		return w.Abilities()
	}
	a.Watcher, _ = s.(Watcher)
	a.Peers, _ = s.(Peers)
	a.Bounded, _ = s.(Bounded)
	a.Inspector, _ = s.(Inspector)
	a.Presence, _ = s.(Presence)
	return a
}

// MinLease returns the shortest lease that an election accepts: that of Bounded, or 1 ms.
func (a Abilities) MinLease() time.Duration {
	if a.Bounded == nil {
		return time.Millisecond
	}
	return a.Bounded.MinLease()
}

// MaxLease returns the longest lease that an election accepts: that of Bounded, but not more than
// the constant MaxLease.
func (a Abilities) MaxLease() time.Duration {
	if a.Bounded == nil {
		return MaxLease
	}
	return min(a.Bounded.MaxLease(), MaxLease)
}

// CheckKey returns the error of Bounded, or nil if there are no limits.
func (a Abilities) CheckKey(key string) error {
	if a.Bounded == nil {
		return nil
	}
	return a.Bounded.CheckKey(key)
}

// Keys returns the result of Inspector, or an error that wraps errors.ErrUnsupported.
func (a Abilities) Keys(ctx context.Context) ([]string, error) {
	if a.Inspector == nil {
		return nil, fmt.Errorf("list the keys of the store: %w", errors.ErrUnsupported)
	}
	return a.Inspector.Keys(ctx)
}

// Inspect returns the result of Inspector, or no finding.
func (a Abilities) Inspect(ctx context.Context, lease time.Duration) ([]Finding, error) {
	if a.Inspector == nil {
		return nil, nil
	}
	return a.Inspector.Inspect(ctx, lease)
}

// CheckRights returns the result of Inspector, or an error that wraps errors.ErrUnsupported.
func (a Abilities) CheckRights(ctx context.Context, key string) error {
	if a.Inspector == nil {
		return fmt.Errorf("check the right to write: %w", errors.ErrUnsupported)
	}
	return a.Inspector.CheckRights(ctx, key)
}

// Pushes reports whether the store pushes every change to all members. Peers cannot promise that.
func (a Abilities) Pushes() bool { return a.Watcher != nil && a.Peers == nil }
