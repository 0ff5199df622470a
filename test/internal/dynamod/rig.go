package dynamod

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/dynamotable"
	"github.com/tenure-go/tenure/test/internal/dynamofake"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Rigs returns the fake, and moto.
func Rigs() []rig.Rig {
	fake := rig.Rig{Name: "dynamodb", Kind: programs, SoakElections: true, Start: func(t testing.TB, _ bool) rig.Site {
		s, err := Run(Table)
		rig.Must(t, err)
		t.Cleanup(func() { _ = s.Kill() })
		return site{s}
	}}
	moto := rig.Rig{Name: "dynamodb-moto", Soak: true, SameClients: true, Clients: 4, Start: func(t testing.TB, _ bool) rig.Site {
		return motoServer{rig.EmulatorFor(t, startMoto)}
	}}
	return []rig.Rig{fake, moto}
}

type site struct{ *Server }

// Open connects through a relay.
func (s site) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r := rig.Relay(t, s.URL())
	return NewStore(t, r.Address(), Table), r
}

// Kit removes items and tables.
func (s site) Kit(t testing.TB) drivertest.Harness {
	remove := func(_ context.Context, key string) error {
		s.Edit(Table, key, func(item map[string]map[string]any) { clear(item) })
		return nil
	}
	s.Allow("powerless", "nothing")
	return drivertest.Harness{
		Delete: remove, Purge: remove, FloorTick: time.Second, Denied: NewStore(t, s.Address(), Table, credentials("powerless", "nothing")),
		Recreate: func(context.Context) error { s.Make(Table); return nil },
	}
}

func credentials(access, secret string) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.Credentials = As(access, secret) }
}

// Faults are those of one server.
func (s site) Faults() []rig.Fault {
	return rig.Of(func(*rand.Rand) rig.Server { return s.Server }, rig.Writers)
}

// Restores returns true.
func (site) Restores() bool { return true }

// Backup restores the table under its own name.
func (s site) Backup(testing.TB) func() { return s.Server.Backup(Table) }

// Mistakes returns clients that ask for another table, or with other settings.
func (s site) Mistakes(t testing.TB) (all []rig.Client) {
	s.Make("replicated")
	s.Describe("replicated", map[string]any{"Replicas": []any{map[string]string{"RegionName": "eu-west-9"}}})
	s.Make("sorted")
	s.Describe("sorted", map[string]any{"KeySchema": []any{
		map[string]string{"AttributeName": "election", "KeyType": "HASH"}, map[string]string{"AttributeName": "at", "KeyType": "RANGE"},
	}})
	for _, m := range []struct {
		name, table string
		change      func(*dynamodb.Options)
		denied      bool
		want        string
	}{
		{name: "missing table, named", table: "no-such-table", want: "no table no-such-table"},
		{name: "missing table, with the remedy", table: "no-such-table", want: "aws dynamodb create-table"},
		{name: "unknown access key", change: credentials("stranger", rig.Secret), denied: true, want: "AWS_ACCESS_KEY_ID"},
		{name: "wrong secret", change: credentials(dynamofake.Access, rig.Secret), denied: true, want: "AWS_SECRET_ACCESS_KEY"},
		{name: "no credentials", change: func(o *dynamodb.Options) { o.Credentials = aws.AnonymousCredentials{} }, denied: true, want: "AWS_PROFILE"},
		{name: "clock in the past", change: skewed(-time.Hour), want: "clock"},
		{name: "clock in the future", change: skewed(time.Hour), want: "clock"},
	} {
		table, change := Table, []func(*dynamodb.Options){}
		if m.table != "" {
			table = m.table
		}
		if m.change != nil {
			change = append(change, m.change)
		}
		all = append(all, rig.Client{
			Name: m.name, Fails: rig.All + " inspect", Says: rig.Says(m.want), Denied: m.denied,
			Open: func(t testing.TB) (driver.Store, error) { return NewStore(t, s.Address(), table, change...), nil },
		})
	}
	for table, want := range map[string]string{"replicated": "global table", "sorted": "no sort key"} {
		all = append(all, rig.Client{
			Name: table + " table", Fails: rig.All, Says: rig.Says(want),
			Open: func(t testing.TB) (driver.Store, error) { return NewStore(t, s.Address(), table), nil },
		})
	}
	return all
}

// skewed makes a client sign with a wrong time of day.
func skewed(by time.Duration) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTPSignerV4 = signer{v4.NewSigner(), by} }
}

type signer struct {
	*v4.Signer
	by time.Duration
}

// SignHTTP signs with the wrong time.
func (s signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request,
	hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	return s.Signer.SignHTTP(ctx, c, r, hash, service, region, at.Add(s.by), opts...)
}

// Rights returns a candidate and an observer with the rights of docs/dynamodb.md, and clients
// without one of them.
func (s site) Rights(testing.TB) []rig.Client {
	client := func(name, fails, says string, rights ...string) rig.Client {
		return rig.Client{Name: name, Fails: fails, Says: rig.Says(says), Denied: true, Open: func(t testing.TB) (driver.Store, error) {
			user := strings.ReplaceAll(name, " ", "-")
			s.Allow(user, "secret", rights...)
			return NewStore(t, s.Address(), Table, credentials(user, "secret")), nil
		}}
	}
	candidate := []string{"DescribeTable", "GetItem", "PutItem"}
	without := func(right, fails string) rig.Client {
		rights := slices.DeleteFunc(slices.Clone(candidate), func(r string) bool { return r == right })
		return client("candidate without "+right, fails, "dynamodb:"+right, rights...)
	}
	return []rig.Client{
		client("candidate", "", "", candidate...),
		client("observer", "insert update rights", "dynamodb:PutItem", "DescribeTable", "GetItem"),
		without("DescribeTable", rig.All+" inspect"), without("GetItem", "read"), without("PutItem", "insert update rights"),
	}
}

// Rotations replaces the access key in the credentials file of AWS's tools. On AWS, a secret never
// changes without its key.
func (s site) Rotations(t testing.TB) []*rotation.Play {
	file, hand := rotation.File(t, "credentials", "[default]\naws_access_key_id=SECRET\naws_secret_access_key=SECRET\n")
	last := ""
	return []*rotation.Play{{
		Name:  "credentials file",
		Args:  []string{"--store", "dynamodb://" + Table + "?endpoint=" + s.URL() + "&region=" + dynamofake.Region},
		Env:   []string{"AWS_SHARED_CREDENTIALS_FILE=" + file, "AWS_CONFIG_FILE=" + file + ".none"},
		Store: NewStore(t, s.Address(), Table),
		Accept: func(secret string) {
			s.Revoke(last)
			last = secret
			s.Allow(secret, secret, "DescribeTable", "GetItem", "PutItem")
		},
		Hand:    hand,
		Refusal: "UnrecognizedClientException",
	}}
}

// programs is how programs run the fake.
var programs = rig.Kind{
	Title:  "a fake of DynamoDB over loopback and a relay for each candidate",
	Polled: true,
	URL:    func(string) string { return "dynamodb://" + Table },
	Env: func(address string) []string {
		return []string{
			"AWS_ENDPOINT_URL=http://" + address, "AWS_REGION=" + dynamofake.Region,
			"AWS_ACCESS_KEY_ID=" + dynamofake.Access, "AWS_SECRET_ACCESS_KEY=" + dynamofake.Secret,
		}
	},
	Start: func(context.Context, string) (rig.Running, error) { return Run() },
	Connect: func(c rig.Connector) (rig.Opener, error) {
		operation := func(r *http.Request) string {
			return strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
		}
		counted := c.HTTPClient(operation)
		client := Client(c.Address(), func(o *dynamodb.Options) { o.HTTPClient = counted })
		return func(_ context.Context, table string) (driver.Store, error) { return dynamotable.New(client, table) }, nil
	},
}
