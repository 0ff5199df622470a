package natsd

import (
	"net"

	"github.com/nats-io/nats-server/v2/server"
)

// portOf is the port that a server was given or found.
func portOf(s *server.Server) int {
	if a, ok := s.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return anyPort
}
