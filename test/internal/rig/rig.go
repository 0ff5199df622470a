// Package rig defines how tests run the servers of a store, so that a test which holds for every
// store is written once. Package test/stores has these tests. Each server's package has its rigs,
// and package rigs lists them.
package rig

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/test/internal/history"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Rig is one store on one kind of server.
type Rig struct {
	// Name is that of the subtests: TestRegister/NAME.
	Name string
	// Soak leaves the rig out in the short pass. SoakElections leaves out only its elections, and
	// SoakFaults its tests with faults of servers.
	Soak, SoakElections, SoakFaults bool
	// Shared: Start returns servers that all tests of the process share.
	Shared bool
	// SameClients: the mistakes, rights and credentials of clients are those of another rig.
	SameClients bool
	// Start starts the servers for the length of a test, or returns those that the tests of the
	// process share. The place for elections on them exists and is empty. Calm tests make no
	// faults: their stores wait as long as a busy machine needs, and repeat what a server refuses
	// although nothing is wrong.
	Start func(t testing.TB, calm bool) Site
	// Clients is the number of clients that contend for a cell, and Attention how long each waits
	// for an answer: far less than a pause. The defaults are Writers, and a quarter of a second.
	Clients   int
	Attention time.Duration
	// Rules say how far the servers deviate from one register, also without a fault.
	Rules history.Rules
	// Kind is how programs run the servers. It is zero if they do not.
	Kind Kind
}

// Site is a store on running servers.
type Site interface {
	// Open opens the store as candidate n does in a process of its own: over its own connections,
	// which pass its own relays. The way is nil if there is no network.
	Open(t testing.TB, n int) (driver.Store, Way)
	// Kit returns an operator's actions, and what the conformance kit needs to know of the store:
	// all of drivertest.Harness except Store, Peer and Cut. Actions that the store does not have
	// are nil.
	Kit(t testing.TB) drivertest.Harness
	// Faults returns the faults of the servers.
	Faults() []Fault
}

// Restorer is a Site whose operators can bring back an earlier state, from a dump or a snapshot.
type Restorer interface {
	// Restores reports whether this server can.
	Restores() bool
	// Backup saves the present state. The returned function brings it back.
	Backup(t testing.TB) (restore func())
}

// Way is the network between one candidate and the servers: a relay, or one to each server.
type Way interface {
	// Blackhole swallows all bytes, and Mute those from the servers, until Heal.
	Blackhole()
	Mute()
	Heal()
	// Hold keeps all bytes until Release.
	Hold()
	Release()
}

// Fault is a fault of servers, and its end.
type Fault struct {
	Name, Why string
	// Fall makes the fault. The returned function undoes it, and waits until the servers are whole.
	Fall func(t testing.TB, rng *rand.Rand) (rise func())
	// Before is the time for which clients work before the fault, so that there is something to
	// lose. Lasts is the length of the fault.
	Before, Lasts time.Duration
	// Least is the shortest time for which clients run.
	Least time.Duration
	// Unknowns is the number of operations with an unknown outcome without which the run proves
	// nothing.
	Unknowns int
	// Rules are added to those of the rig.
	Rules history.Rules
	// Quick faults also run in the short pass.
	Quick bool
	// Serves: the store keeps its contract until the end of the fault, and after it.
	Serves bool
}

// Strike makes the fault and undoes it, once. It returns soon when the context ends.
func (f Fault) Strike(ctx context.Context, t testing.TB, rng *rand.Rand) {
	Sleep(ctx, f.Before/2+time.Duration(rng.Int64N(int64(f.Before+1))))
	rise := f.Fall(t, rng)
	Sleep(ctx, f.Lasts)
	rise()
}

// Server is a server process, which keeps its files and ports.
type Server interface {
	Start() error
	Stop() error
	Kill() error
	Pause() error
	Resume() error
}

// The defaults of Rig.Clients and Rig.Attention.
const (
	Writers   = 8
	Attention = 250 * time.Millisecond
)

// Of returns the faults of a single server that answers again soon after its start. Pick returns
// the one to hit.
func Of(pick func(*rand.Rand) Server, clients int) []Fault {
	do := func(fall, rise func(Server) error) func(testing.TB, *rand.Rand) func() {
		return func(t testing.TB, rng *rand.Rand) func() {
			s := pick(rng)
			Must(t, fall(s))
			return func() { Must(t, rise(s)) }
		}
	}
	const before = 400 * time.Millisecond
	return []Fault{
		{
			Name: "killed", Why: "a server that is killed keeps what it has acknowledged", Fall: do(Server.Kill, Server.Start),
			Before: before, Least: 4 * time.Second, Unknowns: clients, Quick: true,
		},
		{
			Name: "stopped", Why: "a server that shuts down answers no write that it forgets", Fall: do(Server.Stop, Server.Start),
			Before: before, Least: 2 * time.Second, Unknowns: 1, Quick: true,
		},
		{
			Name: "paused", Why: "a server that goes on after a pause carries out what was given up long ago", Fall: do(Server.Pause, Server.Resume),
			Before: before, Lasts: 2 * Attention, Least: 4 * time.Second, Unknowns: clients, Quick: true,
		},
	}
}

// Sleep waits, but not longer than the context.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Must stops a test that cannot go on.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Memory is the store in the memory of one process.
func Memory() Rig {
	return Rig{Name: "memory", Start: func(testing.TB, bool) Site { return inMemory{memory.New()} }}
}

type inMemory struct{ store *memory.Store }

func (m inMemory) Open(testing.TB, int) (driver.Store, Way) { return m.store, nil }
func (inMemory) Faults() []Fault                            { return nil }

func (m inMemory) Kit(testing.TB) drivertest.Harness {
	return drivertest.Harness{
		Delete:   func(_ context.Context, key string) error { m.store.Delete(key); return nil },
		Purge:    func(_ context.Context, key string) error { m.store.Purge(key); return nil },
		Recreate: func(context.Context) error { m.store.Recreate(); return nil },
	}
}

// Kind is how programs run the servers of a rig: the battery and the bench, whose candidates are
// processes of their own. A candidate of the battery gets a value of --store, and one of the bench
// calls Connect.
type Kind struct {
	// Title describes the servers.
	Title string
	// Polled is set if candidates learn of changes by reading, and Files if there is no server that
	// could fail, and no network.
	Polled, Files bool
	// Shortest is the shortest lease that the store takes, if that is more than 2 s.
	Shortest time.Duration
	// Env returns the environment that --store needs, such as credentials. It may be nil.
	Env func(address string) []string
	// URL returns the value of --store for candidates that reach the servers at an address. It is
	// nil if they cannot reach them through relays.
	URL func(address string) string
	// Start starts servers, with their files in the directory if they allow that.
	Start func(ctx context.Context, dir string) (Running, error)
	// Connect connects a process to the servers.
	Connect func(Connector) (Opener, error)
}

// Environ calls Env, if it is not nil.
func (k Kind) Environ(address string) []string {
	if k.Env == nil {
		return nil
	}
	return k.Env(address)
}

// Opener opens a bucket, or the topic or table in which the store keeps elections.
type Opener func(ctx context.Context, place string) (driver.Store, error)

// Running are servers that a program has started. As a Server they fail together.
type Running interface {
	Server
	// Addresses returns HOST:PORT of each, or the directory of files.
	Addresses() []string
	// Create creates a bucket, topic or table.
	Create(ctx context.Context, place string) error
	// End kills the servers.
	End()
}

// Connector says who connects to servers, and how.
type Connector struct {
	ID        string
	Addresses []string          // in the order in which to try them
	Via       map[string]string `json:",omitempty"` // the relay to each address
	// Wall is the error of the connector's time of day.
	Wall time.Duration `json:",omitempty"`
	// Count is called for each request that a store sends, with its kind, if the store can tell.
	Count func(kind string) `json:"-"`
}

// Address returns the first address, or that of its relay.
func (c Connector) Address() string { return c.at(c.Addresses[0]) }

func (c Connector) at(address string) string {
	if via := c.Via[address]; via != "" {
		return via
	}
	return address
}

// DialContext connects to a server, through its relay if there is one.
func (c Connector) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, c.at(address))
}

// Dial is DialContext without a context.
func (c Connector) Dial(network, address string) (net.Conn, error) {
	return c.DialContext(context.Background(), network, address)
}

// ErrNoServer is the error of faults that a store in files cannot have.
var ErrNoServer = errors.New("there is no server that this could happen to")

// NoServer stands for the server of a store in files.
var NoServer Server = noServer{}

type noServer struct{}

func (noServer) Start() error  { return ErrNoServer }
func (noServer) Stop() error   { return ErrNoServer }
func (noServer) Kill() error   { return ErrNoServer }
func (noServer) Pause() error  { return ErrNoServer }
func (noServer) Resume() error { return ErrNoServer }

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
