package stores

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Store is an open store with a connection of its own.
type Store struct {
	// Driver is the store for elections. Its type says which optional interfaces it has, as with
	// any driver.
	Driver driver.Store

	place Place
	close func() error

	client *s3.Client // of object storage

	connection []kgo.Opt // of Kafka
	create     bool
	logger     *slog.Logger
}

// Options say how to open a store.
type Options struct {
	// Client is the name of the connection that operators see on the server, if the store has such
	// names.
	Client string
	// Create makes the bucket, topic or table if it is missing.
	Create bool
	// Lease is the lease of the elections, if it is known. The wait for an answer is short compared
	// with it.
	Lease time.Duration
	// OnConnection is called when the connection is lost, with the reason if there is one, and when
	// it is back; it may be nil. With several servers it is called for each. Stores without lasting
	// connections never call it.
	OnConnection func(up bool, err error)
	// Logger receives the reasons why a nomination does not work, and why credentials cannot be
	// read again; nil: none.
	Logger *slog.Logger
}

// stale reports that credentials cannot be read again.
func (o Options) stale(err error) {
	if o.Logger != nil {
		o.Logger.Warn("credentials cannot be read again: the last ones stay in use", "cause", err)
	}
}

// Open returns a store that is ready to be used. Its errors have hints. It calls the server only if
// it has to; Check always does.
func Open(ctx context.Context, p Place, o Options) (*Store, error) {
	s, err := p.kind().open(ctx, o)
	if err != nil {
		return nil, p.blame(err)
	}
	s.place = p
	return s, nil
}

// Check reads an election's record, to find out early whether the store exists and permits that.
// Its errors have hints.
func (s *Store) Check(ctx context.Context, key string) error {
	if err := s.place.kind().check(ctx, s, key); err != nil {
		return s.place.blame(err)
	}
	return nil
}

// Inspect reports unsafe settings of the store for elections with leases up to the given one. Its
// errors have hints.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	inspector := driver.AbilitiesOf(s.Driver).Inspector
	if inspector == nil {
		return nil, nil
	}
	found, err := inspector.Inspect(ctx, lease)
	if err != nil {
		return nil, s.place.Explain(err)
	}
	return found, nil
}

// Close ends the watches and the connection.
func (s *Store) Close() error { return s.close() }
