package rig

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Kind is how programs run the servers of a rig: the battery and the bench, whose candidates are
// processes of their own. A candidate of the battery gets a value of --store, and one of the bench
// calls Connect.
type Kind struct {
	// Title describes the servers.
	Title string
	// Polled is set if candidates learn of changes by reading, and Files if there is no server that
	// could fail, and no network.
	Polled, Files bool
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
