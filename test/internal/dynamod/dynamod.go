// Package dynamod runs the fake of DynamoDB for the tests of every store, the battery and the
// bench. It listens on 127.0.0.1 within this process. Its tables stay when it is killed.
package dynamod

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/tenure-go/tenure/driver/dynamotable"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/dynamofake"
)

// Table is the table of the rig.
const Table = "elections"

// Server is a fake that can fail.
type Server struct {
	*dynamofake.Server
	address string

	mu   sync.Mutex
	http *http.Server

	pause sync.RWMutex // held while the server is paused
}

// Run starts a server with these tables.
func Run(tables ...string) (*Server, error) {
	free, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	s := &Server{Server: dynamofake.New(tables...), address: ports.Address(free[0])}
	return s, s.Start()
}

// Start listens, again after Stop or Kill.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(s.serve)}
	s.http = server
	go func() { _ = server.Serve(l) }()
	return nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.pause.RLock()
	defer s.pause.RUnlock()
	s.ServeHTTP(w, r)
}

// Kill ends all connections at once. Requests that have arrived may still be carried out.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.http.Close()
}

// Stop first answers the requests that have arrived.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.http.Shutdown(context.Background())
}

// Pause holds requests back until Resume.
func (s *Server) Pause() error {
	s.pause.Lock()
	return nil
}

// Resume carries out the requests that Pause held back.
func (s *Server) Resume() error {
	s.pause.Unlock()
	return nil
}

// Address returns HOST:PORT.
func (s *Server) Address() string { return s.address }

// Client returns a client of the server, or of a relay to it.
func Client(address string, change ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://" + address), Region: dynamofake.Region,
		Credentials: As(dynamofake.Access, dynamofake.Secret),
	}, change...)
}

// As returns credentials.
func As(access, secret string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}, nil
	})
}

// NewStore returns a store over a client of its own, and a function that closes its connections.
func NewStore(address, table string, change ...func(*dynamodb.Options)) (*dynamotable.Store, func(), error) {
	// Idle connections cost goroutines here and in a relay.
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	change = append([]func(*dynamodb.Options){func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: transport} }}, change...)
	store, err := dynamotable.New(Client(address, change...), table)
	if err != nil {
		return nil, nil, fmt.Errorf("table %s: %w", table, err)
	}
	return store, transport.CloseIdleConnections, nil
}
