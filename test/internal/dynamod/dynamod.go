// Package dynamod runs the fake of DynamoDB for the tests of every store, the battery and the
// bench. It listens on 127.0.0.1 within this process. Its tables stay when it is killed.
package dynamod

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/tenure-go/tenure/driver/dynamotable"
	"github.com/tenure-go/tenure/test/internal/dynamofake"
	"github.com/tenure-go/tenure/test/internal/outage"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// Table is the table of the rig.
const Table = "elections"

// Server is a fake that can fail.
type Server struct {
	*dynamofake.Server
	*outage.Host
}

// Run starts a server with these tables.
func Run(tables ...string) (*Server, error) {
	fake := dynamofake.New(tables...)
	s, err := outage.Run(fake)
	return &Server{fake, s}, err
}

// Create makes a table.
func (s *Server) Create(_ context.Context, table string) error { s.Make(table); return nil }

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

// NewStore returns a store over a client of its own, for the length of a test.
func NewStore(t testing.TB, address, table string, change ...func(*dynamodb.Options)) *dynamotable.Store {
	t.Helper()
	change = append([]func(*dynamodb.Options){func(o *dynamodb.Options) { o.HTTPClient = rig.HTTPClient(t) }}, change...)
	store, err := dynamotable.New(Client(address, change...), table)
	rig.Must(t, err)
	return store
}
