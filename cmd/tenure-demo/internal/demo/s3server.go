package demo

import (
	"net"
	"net/http"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// s3Bucket is the bucket of the election in the demo's own object storage.
const s3Bucket = "demo-election"

// s3Server runs object storage in this process: in memory, on loopback, on a free port, without TLS
// and signatures.
type s3Server struct {
	http *http.Server
	url  string
}

func serveS3() (*s3Server, error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(s3Bucket); err != nil {
		return nil, fault.New("give a running one with --store", "the demo's server does not start: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fault.New("give a running one with --store", "the demo's server does not start: %w", err)
	}
	s := &s3Server{
		http: &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: 10 * time.Second},
		url:  "http://" + l.Addr().String(),
	}
	go func() { _ = s.http.Serve(l) }() // until close
	return s, nil
}

func (s *s3Server) place() stores.Place { return s3Place(s.url) }

func s3Place(url string) stores.Place {
	return stores.Place{
		Setting: theServer,
		S3:      &stores.S3{Bucket: s3Bucket, Endpoint: url, Region: "us-east-1", Anonymous: true},
	}
}

func (s *s3Server) close() { _ = s.http.Close() }
