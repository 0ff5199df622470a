package demo

import (
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// spec is the first line of a candidate's standard input. It holds credentials, so it is not an
// argument of the command line, which all users of the machine can read.
type spec struct {
	Place    stores.Place  `json:"place"`
	Election string        `json:"election"`
	ID       string        `json:"id"`
	Lease    time.Duration `json:"lease"`
	Renew    time.Duration `json:"renew"`
	Splay    time.Duration `json:"splay"`
	// Peer is nil if followers do not use peers.
	Peer *peers.Settings `json:"peer,omitempty"`
}

func (s spec) config() tenure.Config {
	return tenure.Config{ID: s.ID, Lease: s.Lease, Tuning: tenure.Tuning{Renew: s.Renew, Splay: s.Splay}}
}
