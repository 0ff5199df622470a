package main

import (
	"github.com/tenure-go/tenure/test/internal/relay"
)

// The faults of the network between one candidate and the server. They last longer than the bound
// for the next worker.
var (
	blackhole = fault{name: "everything to and from the server is swallowed", lasts: 2.5, begin: loses((*relay.Relay).Blackhole)}
	mute      = fault{name: "requests arrive and answers are lost", lasts: 2.5, begin: loses((*relay.Relay).Mute)}
	cut       = fault{name: "its connection is reset, and new ones are refused", lasts: 2.5,
		begin: between(func(c *candidate) func() error {
			c.relay.Cut()
			return c.relay.Restore
		})}
	delay = fault{name: "everything takes 1.2 leases in each direction", lasts: 3,
		begin: between(func(c *candidate) func() error {
			c.relay.Delay(c.stage.lease * 6 / 5)
			return func() error { c.relay.Release(); return nil }
		})}
)

// loses returns a fault that loses bytes. Its end closes the connections, so that new ones begin.
func loses(how func(*relay.Relay)) func(*candidate) (func() error, error) {
	return between(func(c *candidate) func() error {
		how(c.relay)
		return func() error { c.relay.Heal(); return nil }
	})
}

// between returns a fault of the network between a candidate and the server.
func between(begin func(*candidate) (end func() error)) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		if c.relay == nil {
			return nil, errNoServer
		}
		return begin(c), nil
	}
}

// The faults of the server. They affect all candidates.
var (
	outage = fault{name: "the server is killed, and started again after 1.5 leases", lasts: 1.5, outage: true,
		begin: func(c *candidate) (func() error, error) {
			return c.stage.server.Start, c.stage.server.Kill()
		}}
	hang = fault{name: "the server is stopped for 3 leases", lasts: 3, outage: true,
		begin: func(c *candidate) (func() error, error) {
			return c.stage.server.Resume, c.stage.server.Pause()
		}}
)
