// Package dynamoplace describes stores in tables of DynamoDB.
package dynamoplace

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/awstools"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/dynamotable"
)

// Place is a table. Credentials are not a part of it: they come from the environment, the
// configuration files or the machine's role, as for all of AWS's tools.
type Place struct {
	Table    string `json:"table"`
	Region   string `json:"region,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
}

var parameters = []kind.Parameter{
	{Name: "region", Value: "NAME", Meaning: "region of the table; default: that of AWS's tools"},
	{Name: "endpoint", Value: "URL", Meaning: "a server other than DynamoDB itself"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:        "dynamodb",
		Container:  "table",
		Schemes:    []kind.Scheme{{Name: "dynamodb", Form: "dynamodb://TABLE"}},
		About:      "DynamoDB, --store dynamodb://TABLE[?...], takes these parameters",
		Parameters: parameters,
		Notes: `Credentials come from where all of AWS's tools find them, as for object storage, never from the
URL. docs/dynamodb.md has the rights and the cost.`,
		Polled:      []string{"DynamoDB"},
		TokenDigits: len("1795270861001"), // milliseconds of the service's clock
		DemoLease:   5 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL.
func (d *Place) String() string {
	return kind.With("dynamodb://"+d.Table, "?", [2]string{"region", d.Region}, [2]string{"endpoint", d.Endpoint})
}

// GoString is String.
func (d *Place) GoString() string { return d.String() }

// Product returns DynamoDB.
func (d *Place) Product() string { return "DynamoDB" }

// Pushes returns false.
func (d *Place) Pushes() bool { return false }

// Limits returns those of every table.
func (d *Place) Limits() (driver.Bounded, error) { return dynamotable.Limits(), nil }

// Prices returns those of AWS for requests on demand, which docs/dynamodb.md also has, or none for
// another server.
func (d *Place) Prices() kind.Prices {
	if d.Endpoint != "" {
		return kind.Prices{}
	}
	return kind.Prices{Read: 0.000125, Write: 0.000625, List: "DynamoDB on demand, us-east-1", Date: "2024-11-01"}
}

// Commands returns those of the AWS command line.
func (d *Place) Commands(key string) kind.Commands {
	item := " --table-name " + d.Table + ` --key '{"` + dynamotable.KeyAttribute + `":{"S":"` + strings.ReplaceAll(key, "'", `'\''`) + `"}}'` + d.flags()
	return kind.Commands{
		Look:   "aws dynamodb get-item --consistent-read --query Item.record.B --output text" + item + " | base64 -d",
		Delete: "aws dynamodb delete-item" + item,
	}
}

// flags returns the flags of the AWS command line that reach the same server.
func (d *Place) flags() string { return awstools.Flags(d.Endpoint, d.Region) }

// The form of a URL in hints.
const (
	example  = "dynamodb://elections?region=eu-central-1"
	likeThis = "give a URL such as " + example
)

// parse reads a URL of the form dynamodb://table[?parameter=value[&...]].
func parse(raw string) (*Place, error) {
	u, err := kind.ParseURL(raw, awstools.Chain, likeThis)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "":
		return nil, fault.New(likeThis, "names no table")
	case strings.ContainsAny(u.Host, ":[]"):
		return nil, fault.New("the host of a server goes behind the table: "+example+"&endpoint=http://host:8000", "has a host where the table should be")
	case strings.Trim(u.Path, "/") != "":
		return nil, fault.New("a table holds all elections, without prefixes; "+likeThis, "has a path behind the table")
	}
	if err := dynamotable.CheckName(u.Host); err != nil {
		return nil, fault.New(likeThis, "%w", err)
	}
	d := &Place{Table: u.Host}
	q := kind.Query{Known: kind.Names(parameters), Hint: likeThis, Elsewhere: awstools.Chain, IsCredential: awstools.Secretive.MatchString}
	return d, q.Each(u.RawQuery, func(key, value string) (err error) {
		if key == "region" {
			d.Region = value
			return nil
		}
		d.Endpoint, err = kind.Endpoint(value, awstools.Chain)
		return err
	})
}

// Open returns a store with a client of its own. It calls the server only to make a table.
func (d *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	client, err := d.client(ctx, o)
	if err != nil {
		return nil, err
	}
	store, err := dynamotable.New(client, d.Table)
	if err != nil {
		return nil, fault.New(likeThis, "%w", err)
	}
	if o.Create {
		if err := d.create(ctx, client); err != nil {
			return nil, err
		}
	}
	return &kind.Opened{
		Driver: store, Close: func() error { return nil },
		LogIn: func(ctx context.Context) error { return awstools.LogIn(ctx, client.Options().Credentials) },
	}, nil
}

// client returns a client that is configured like all of AWS's tools, except for the settings in
// the URL.
func (d *Place) client(ctx context.Context, o kind.Options) (*dynamodb.Client, error) {
	cfg, err := awstools.Load(ctx, o, d.Region, "")
	if err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if d.Endpoint != "" {
			o.BaseEndpoint = &d.Endpoint
		}
	}), nil
}
