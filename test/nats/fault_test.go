//go:build integration

package nats

import "github.com/tenure-go/tenure/test/internal/natsd"

// fault is a fault of one server, with its end.
type fault struct {
	name       string
	fall, rise func(a *arena, s *natsd.Server)
	// believes: the server goes on believing that it leads its streams, for up to ten seconds or
	// until it receives messages of the others.
	believes bool
}

func faults() []fault {
	start := func(a *arena, s *natsd.Server) { a.must(s.Start()) }
	return []fault{
		{"shut down", func(a *arena, s *natsd.Server) { a.must(s.Stop()) }, start, false},
		{"killed", func(_ *arena, s *natsd.Server) { s.Kill() }, start, false},
		{"frozen", func(a *arena, s *natsd.Server) { a.must(s.Pause()) }, func(a *arena, s *natsd.Server) { a.must(s.Resume()) }, true},
		{"parted", func(a *arena, s *natsd.Server) { a.Part(s) }, func(a *arena, s *natsd.Server) { a.Heal(s) }, true},
	}
}

// roll restarts all servers gracefully, one after another, each when no copy is behind.
func (a *arena) roll() {
	a.tb.Helper()
	for _, s := range a.Servers {
		a.must(s.Stop())
		a.must(s.Start())
		a.whole()
	}
}
