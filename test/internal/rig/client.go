package rig

import (
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Secret is a part of all passwords of clients. No error may show it.
const Secret = "s3cret"

// Client is a client with a mistake, or with few rights.
type Client struct {
	Name string
	// Owner is a store on the same place with all rights. The default is that of the site.
	Owner driver.Store
	// Open opens the client's store. The mistake, or a right that is taken away, lasts for this
	// test.
	Open func(t testing.TB) (driver.Store, error)
	// Fails names the calls that fail: open, or read, insert, update, rights and inspect.
	Fails string
	// Says has a text that the error of each call contains. The text of "" is for all calls that
	// have none.
	Says map[string]string
	// Denied: each error wraps driver.ErrDenied.
	Denied bool
	// Elsewhere: calls that do not fail go to another place, and may conflict there.
	Elsewhere bool
}

// All names the calls that every client makes.
const All = "read insert update rights"

// Says returns a text for all calls.
func Says(text string) map[string]string { return map[string]string{"": text} }

// Clients is a Site that knows mistakes of its clients, rights and their replaceable credentials.
type Clients interface {
	Site
	// Mistakes returns clients with mistakes, and one without.
	Mistakes(t testing.TB) []Client
	// Rights returns "candidate" and "observer", with the rights that the documentation names, and
	// clients without one of these rights.
	Rights(t testing.TB) []Client
	// Rotations returns the ways in which programs read their credentials again.
	Rotations(t testing.TB) []*rotation.Play
}
