// Package gcsd runs servers that speak the protocol of Google Cloud Storage: one of this project,
// with rights and faults, and the emulator fake-gcs-server. The cloud itself is in no test.
package gcsd

import (
	"context"

	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/test/internal/outage"
)

// Server is a gcsfake.Server that can fail. It keeps its objects and its port through outages.
type Server struct {
	*gcsfake.Server
	*outage.Host
}

// Run starts a server with these buckets.
func Run(buckets ...string) (*Server, error) {
	fake := gcsfake.New(buckets...)
	s, err := outage.Run(fake)
	return &Server{fake, s}, err
}

// Create makes a bucket.
func (s *Server) Create(_ context.Context, bucket string) error { s.Recreate(bucket); return nil }
