// Package stores opens the store that the command line names.
package stores

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
)

// Place says where elections are kept. One of its fields is set, for one kind of store. It may hold
// credentials; String leaves them out.
type Place struct {
	// Setting is the source of the place, for errors: "--store", "--context", or a variable of the
	// environment.
	Setting string `json:"-"`

	NATS  *NATS  `json:"nats,omitempty"`
	S3    *S3    `json:"s3,omitempty"`
	Kafka *Kafka `json:"kafka,omitempty"`
	SQL   *SQL   `json:"sql,omitempty"`
}

// kind holds the functions of one kind of store. Its errors have hints, and no setting in front.
type kind interface {
	String() string
	// name names the place in an error, after the setting.
	name() string
	limits() (driver.Bounded, error)
	open(context.Context, Options) (*Store, error)
	// check calls the store to find problems.
	check(ctx context.Context, s *Store, key string) error
	explain(error) *fault.Error
	commands(key string) Commands
}

// Price returns the cost of a thousand reads in dollars; 0 if they cost nothing, or it is not
// known.
func (p Place) Price() float64 {
	if p.S3 != nil && p.S3.Endpoint == "" {
		return 0.0004 // AWS, S3 Standard, us-east-1: docs/object-storage.md
	}
	return 0
}

// Commands are commands of other tools by which an operator can work on an election.
type Commands struct {
	// Look prints the record.
	Look string
	// Delete removes the record, which forces a failover; empty if no command does that.
	Delete string
}

// kind returns nil if no place is named.
func (p Place) kind() kind {
	switch {
	case p.NATS != nil:
		return p.NATS
	case p.S3 != nil:
		return p.S3
	case p.Kafka != nil:
		return p.Kafka
	case p.SQL != nil:
		return p.SQL
	}
	return nil
}

// Kind returns the name of the kind of store for messages.
func (p Place) Kind() string {
	switch {
	case p.NATS != nil:
		return "NATS"
	case p.S3 != nil:
		return "object storage"
	case p.SQL != nil:
		return p.SQL.database().name
	}
	return "Kafka"
}

// IsZero reports whether no place is named.
func (p Place) IsZero() bool { return p.kind() == nil }

// String returns the place without credentials.
func (p Place) String() string {
	if p.IsZero() {
		return "no store"
	}
	return p.kind().String()
}

// GoString is String, so that no way of printing shows credentials.
func (p Place) GoString() string { return p.String() }

// Pushes reports whether the store pushes changes. Other stores are polled, or have peers.
func (p Place) Pushes() bool { return p.S3 == nil && (p.SQL == nil || p.SQL.pushes()) }

// Nomination returns one line of text about the group that nominates the leader of an election, or
// an empty string if none does.
func (p Place) Nomination(election string) string {
	if p.Kafka == nil || p.Kafka.NELI == nil {
		return ""
	}
	return p.Kafka.NELI.tell(election)
}

// Commands returns those for the record of an election.
func (p Place) Commands(key string) Commands { return p.kind().commands(key) }

// Explain returns an error of the store with a hint.
func (p Place) Explain(err error) error { return p.blame(p.kind().explain(err)) }

// Unsafe returns the error for a finding that makes elections in this place unsafe.
func (p Place) Unsafe(f driver.Finding) error {
	return p.blame(fault.New(f.Remedy, "%s: %s: %s", f.Severity, f.Setting, f.Problem))
}

// Denied is Explain for a missing right whose error is known only as text.
func (p Place) Denied(text string) error {
	return p.Explain(&deniedError{text})
}

type deniedError struct{ text string }

func (e *deniedError) Error() string { return e.text }
func (e *deniedError) Unwrap() error { return driver.ErrDenied }

// madeBy returns the hint for a bucket, topic or table that is missing. Commands that only read
// cannot make it.
func madeBy(command string) string {
	return "check its name; --create, which tenure run and tenure-demo have, makes it, and so does: " + command
}

// blame puts the setting and its value, without credentials, in front of an error.
func (p Place) blame(err error) error {
	setting := p.Setting
	if setting == "" {
		setting = "store"
	}
	return inFront(setting+" "+p.kind().name(), err)
}

// inFront puts a text in front of an error. It keeps the hint, and whether waiting may help.
func inFront(text string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Behind(text)
	}
	return fault.New("", "%s: %w", text, err)
}
