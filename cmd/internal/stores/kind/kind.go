// Package kind defines the description that each kind of store gives of itself, and holds the code
// that the kinds share. A kind is a package beside this one; package stores lists them.
package kind

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/nomination"
)

// Kind describes one kind of store. URLs, redaction, help texts and completion derive from it.
type Kind struct {
	// Key names the kind in JSON.
	Key string
	// Schemes are those of its URLs.
	Schemes []Scheme
	// Container is the word for what holds elections, for help texts: bucket, topic or table.
	Container string
	// Refused explains why other programs' schemes are not taken.
	Refused map[string]error
	// About begins the help text and ends before the parameters. Notes follow the parameters.
	About, Notes string
	// Parameters are those of its URLs that the help text explains.
	Parameters []Parameter
	// Harmless are more parameters whose values are no secrets, such as those of the client
	// library.
	Harmless []string
	// Polled names its stores that do not push changes, for the help text.
	Polled []string
	// TokenDigits is the usual number of digits of a fencing token.
	TokenDigits int
	// DemoLease is a short lease that fits a store which other programs use, too.
	DemoLease time.Duration
	// Parse reads a URL whose scheme is the Name of one of the Schemes. Its errors have hints, no
	// setting in front, and no credentials.
	Parse func(scheme, raw string) (Place, error)
	// Empty returns a place to decode JSON into.
	Empty func() Place
}

// Scheme is a scheme of URLs.
type Scheme struct {
	Name    string
	Aliases []string
	// Form shows the URL in the help of --store.
	Form string
	// Opaque: no // follows the colon, and the rest is the name of a file.
	Opaque bool
}

// Parameter is a parameter of a URL.
type Parameter struct {
	Name, Value, Meaning string
	// Fixed: Value is the only one that it takes. Any other value may be a secret.
	Fixed bool
}

// Names returns the names of parameters.
func Names(all []Parameter) []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// Help returns the section of the help text about this kind.
func (k *Kind) Help() string {
	var b strings.Builder
	b.WriteString(k.About + ":\n")
	for _, p := range k.Parameters {
		fmt.Fprintf(&b, "  %-17s  %s\n", p.Name+"="+p.Value, p.Meaning)
	}
	return b.String() + k.Notes
}

// Place says where elections are kept. It may hold credentials, which String leaves out. The errors
// of its methods have hints, and no setting in front.
type Place interface {
	String() string
	// Product returns the name of the store's product for messages.
	Product() string
	// Pushes reports whether the store pushes changes.
	Pushes() bool
	// Limits returns those of leases and keys. It calls no server.
	Limits() (driver.Bounded, error)
	// Open returns a store that is ready to be used. It calls the server only if it has to.
	Open(context.Context, Options) (*Opened, error)
	// Explain returns an error of the store with its remedy.
	Explain(error) *fault.Error
	// Commands returns those for the record of an election.
	Commands(key string) Commands
}

// Optional methods of a Place.
type (
	// Named is a place with another name than String in an error, after the setting.
	Named interface{ Name() string }
	// Priced is a place where each request may cost money.
	Priced interface {
		// Prices returns the zero value if they are not known.
		Prices() Prices
	}
	// Paced is a place that takes writes to one record at a limited pace.
	Paced interface {
		// Pace returns the shortest time between two writes to a record.
		Pace() time.Duration
	}
	// Nominated is a place in which a group may nominate the leader.
	Nominated interface {
		// Nomination describes the group of an election in one line; empty if there is none.
		Nomination(election string) string
	}
	// Configured is a place with settings that are not in its URL.
	Configured interface {
		With(Settings) (Place, error)
	}
)

// Prices are those of requests, in dollars.
type Prices struct {
	// Read and Write are the prices of a thousand requests.
	Read, Write float64
	// List names the price list, Date is its day, as in 2006-01-02.
	List, Date string
}

// Settings say where the properties of clients come from.
type Settings struct {
	// Place is the setting that names the place, for errors.
	Place string
	// Setting is the source of the file's name, for errors: "--kafka-properties", or a variable of
	// the environment.
	Setting string
	// File is in the format that Kafka's own tools have; empty: none.
	File string
	// Env looks up a variable of the environment.
	Env func(string) string
}

// Commands are commands of other tools by which an operator can work on an election.
type Commands struct {
	// Look prints the record.
	Look string
	// Delete removes the record, which forces a failover; empty if no command does that.
	Delete string
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

// CreateWithin is how long a new bucket may take to appear.
const CreateWithin = 20 * time.Second

// Stale reports that credentials cannot be read again.
func (o Options) Stale(err error) {
	if o.Logger != nil {
		o.Logger.Warn("credentials cannot be read again: the last ones stay in use", "cause", err)
	}
}

// Opened is an open store with a connection of its own.
type Opened struct {
	Driver driver.Store
	Close  func() error
	// LogIn finds the credentials before the first request, if a failure would be hard to tell from
	// one of the request; nil: there is nothing to do.
	LogIn func(context.Context) error
	// Nominate takes part in the nomination for an election; nil: no group nominates.
	Nominate func(ctx context.Context, election string) (*Nomination, error)
}

// Nomination is part of an election in which a nominator outside of it decides which candidate has
// precedence.
type Nomination struct {
	nomination.Config
	// Metadata is published by each candidate, for Check.
	Metadata map[string]string
	// Check returns an error if the published metadata of a leader shows that another Nominator
	// nominated it.
	Check func(leader map[string]string) error
	// Close gives up the nomination at once, if this candidate is the nominee.
	Close func() error
}
