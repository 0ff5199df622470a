// Package dynamo tests elections on the fake of DynamoDB, in virtual time.
package dynamo

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/dynamotable"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/internal/test/pipes"
	"github.com/tenure-go/tenure/test/internal/dynamod"
	"github.com/tenure-go/tenure/test/internal/dynamofake"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

const table = "elections"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, n *pipenet.Network, address string, change ...func(*dynamodb.Options)) *dynamotable.Store {
	t.Helper()
	change = append([]func(*dynamodb.Options){func(o *dynamodb.Options) { o.HTTPClient = n.Client() }}, change...)
	s, err := dynamotable.New(dynamod.Client(address, change...), table)
	must(t, err)
	return s
}

// distance delays most requests and answers by some milliseconds, as networks do. Without it,
// virtual time would not advance.
var distance = s3fake.Plan{
	Chances:  map[s3fake.Fault]float64{s3fake.DelayBefore: 0.5, s3fake.DelayAfter: 0.4},
	MaxDelay: 4 * time.Millisecond,
}

func harness(t testing.TB) drivertest.Harness {
	n, fake := new(pipenet.Network), dynamofake.New(table)
	address := pipes.Serve(t, n, s3fake.Wrap(fake, 1, distance))
	r, err := relay.Over(n, "relay:80", address)
	must(t, err)
	t.Cleanup(r.Close)
	remove := func(_ context.Context, key string) error {
		fake.Edit(table, key, func(item map[string]map[string]any) { clear(item) })
		return nil
	}
	fake.Allow("powerless", "nothing")
	return drivertest.Harness{
		Store: open(t, n, r.Address()), Peer: open(t, n, address),
		Denied: open(t, n, address, func(o *dynamodb.Options) { o.Credentials = dynamod.As("powerless", "nothing") }),
		Delete: remove, Purge: remove, FloorTick: time.Second,
		Recreate: func(context.Context) error { fake.Make(table); return nil },
		Cut: func() func() {
			r.Blackhole()
			return r.Heal
		},
	}
}

func TestConformance(t *testing.T) { drivertest.RunInBubbles(t, harness) }

func TestElections(t *testing.T) { electiontest.RunInBubbles(t, harness) }

// fakeStore is a store on a fake over pipes.
func fakeStore(t testing.TB, change ...func(*dynamodb.Options)) (*dynamofake.Server, *dynamotable.Store) {
	n, fake := new(pipenet.Network), dynamofake.New(table)
	return fake, open(t, n, pipes.Serve(t, n, fake), change...)
}

// TestLostAnswer: a write that was applied and lost its answer is no conflict.
func TestLostAnswer(t *testing.T) {
	fake, s := fakeStore(t)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	lose := false
	sent := 0
	fake.Intercept = func(_ http.ResponseWriter, operation string, carryOut func()) bool {
		if !lose || operation != "PutItem" {
			return false
		}
		sent++
		carryOut()
		panic(http.ErrAbortHandler)
	}
	lose = true
	_, err = s.CompareAndSwap(t.Context(), "k", v, []byte("second"))
	if err == nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
		t.Errorf("got %v, want an open outcome", err)
	}
	if sent != 1 {
		t.Errorf("%d requests were sent, want 1", sent)
	}
	if e, err := s.Read(t.Context(), "k"); err != nil || string(e.Value) != "second" {
		t.Errorf("the cell holds %q (%v), so the write was not applied", e.Value, err)
	}
}

// TestOpenOutcomes: answers that do not show that the condition was checked leave the outcome open.
func TestOpenOutcomes(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
	}{
		{"ThrottlingException", 400},
		{"ProvisionedThroughputExceededException", 400},
		{"RequestLimitExceeded", 400},
		{"TransactionConflictException", 400},
		{"InternalServerError", 500},
		{"ServiceUnavailable", 503},
		{"ConditionalCheckFailedException", 500},
		{"", 301}, {"", 302}, {"", 429}, {"", 502},
	} {
		t.Run(c.code+http.StatusText(c.status), func(t *testing.T) {
			fake, s := fakeStore(t)
			v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
			must(t, err)
			sent := 0
			fake.Intercept = func(w http.ResponseWriter, _ string, _ func()) bool {
				sent++
				dynamofake.Refuse(w, c.status, c.code, "on purpose")
				return true
			}
			_, err = s.CompareAndSwap(t.Context(), "k", v, []byte("second"))
			if err == nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) || sent != 1 {
				t.Errorf("write: got %v after %d requests, want an open outcome after 1", err, sent)
			}
			if _, err = s.Read(t.Context(), "k"); err == nil || errors.Is(err, driver.ErrDenied) {
				t.Errorf("read: got %v", err)
			}
		})
	}
}

// TestRedirects: no call follows one, whatever its client for HTTP does by default.
func TestRedirects(t *testing.T) {
	n := new(pipenet.Network)
	for name, client := range map[string]dynamodb.HTTPClient{
		"SDK's own": awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DialContext = n.DialContext }),
		"plain":     n.Client(),
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			fake := dynamofake.New(table)
			s := open(t, n, pipes.Serve(t, n, fake), func(o *dynamodb.Options) { o.HTTPClient = client })
			v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
			must(t, err)
			sent := 0
			fake.Intercept = func(w http.ResponseWriter, _ string, _ func()) bool {
				if sent++; sent > 1 {
					return false
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				return true
			}
			_, err = s.CompareAndSwap(t.Context(), "k", v, []byte("second"))
			if err == nil || errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), "redirects") || sent != 1 {
				t.Errorf("%s client, %d: %v after %d requests", name, status, err, sent)
			}
		}
	}
}

// TestConditionsIgnored: a server that ignores a condition gets no election, also one that begins
// to do so after the check.
func TestConditionsIgnored(t *testing.T) {
	for _, ignored := range []string{"attribute_not_exists(#k)", "#v = :prev"} {
		fake, s := fakeStore(t)
		fake.Ignores = func(condition string) bool { return condition == ignored }
		if _, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first")); !errors.Is(err, driver.ErrUnfit) {
			t.Errorf("%s: write: got %v", ignored, err)
		}
		if e, err := s.Read(t.Context(), "k"); err != nil || !e.Absent() {
			t.Errorf("%s: the cell holds %q (%v)", ignored, e.Value, err)
		}
		if err := s.CheckRights(t.Context(), "k"); ignored == "#v = :prev" && !errors.Is(err, driver.ErrUnfit) {
			t.Errorf("%s: rights: got %v", ignored, err)
		}
	}
	fake, s := fakeStore(t)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	fake.Ignores = func(string) bool { return true }
	if err := s.CheckRights(t.Context(), "k"); !errors.Is(err, driver.ErrUnfit) {
		t.Errorf("rights, later: got %v", err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !errors.Is(err, driver.ErrUnfit) {
		t.Errorf("write, later: got %v", err)
	}
}

// TestRestoredTable: a table that came from a backup is another era, and its items are unproven,
// also for a store that has just been opened.
func TestRestoredTable(t *testing.T) {
	fake, s := fakeStore(t)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	before, err := s.Read(t.Context(), "k")
	must(t, err)
	restore := fake.Backup(table)
	fake.Drop(table)
	if _, err := s.Read(t.Context(), "k"); err == nil || errors.Is(err, driver.ErrDenied) {
		t.Errorf("read of a missing table: got %v", err)
	}
	restore()
	after, err := s.Read(t.Context(), "k")
	must(t, err)
	if string(after.Value) != "first" || after.Era == before.Era || !after.Unproven || before.Unproven || after.Floor == 0 {
		t.Errorf("before %+v, restored %+v", before, after)
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("write from a version of the former table: got %v", err)
	}
	_, err = s.CompareAndSwap(t.Context(), "k", after.Version, []byte("third"))
	must(t, err)
	if e, err := s.Read(t.Context(), "k"); err != nil || e.Unproven || e.Era != after.Era {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestDescribeTableDown: an outage of DescribeTable alone costs no lease. From its second minute
// on, nothing shows that the table was not restored, so a record is unproven.
func TestDescribeTableDown(t *testing.T) { synctest.Test(t, describeTableDown) }

func describeTableDown(t *testing.T) {
	fake, s := fakeStore(t)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	fake.Intercept = func(w http.ResponseWriter, operation string, _ func()) bool {
		if operation != "DescribeTable" {
			return false
		}
		dynamofake.Refuse(w, http.StatusBadRequest, "ThrottlingException", "on purpose")
		return true
	}
	for _, later := range []struct {
		by       time.Duration
		unproven bool
	}{{50 * time.Second, false}, {20 * time.Second, true}} {
		time.Sleep(later.by)
		if e, err := s.Read(t.Context(), "k"); err != nil || e.Version != v || e.Unproven != later.unproven {
			t.Errorf("read %v later: got %+v, %v", later.by, e, err)
		}
	}
	_, err = s.CompareAndSwap(t.Context(), "k", v, []byte("second"))
	must(t, err)
}

// TestEditedItem: a value that was edited by hand is not trusted, and a foreign item not replaced.
func TestEditedItem(t *testing.T) {
	fake, s := fakeStore(t)
	_, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	fake.Edit(table, "k", func(item map[string]map[string]any) { item["record"] = map[string]any{"B": "Zmlyc3Q="} })
	if e, err := s.Read(t.Context(), "k"); err != nil || e.Unproven {
		t.Errorf("as it was: got %+v, %v", e, err)
	}
	fake.Edit(table, "k", func(item map[string]map[string]any) { item["record"] = map[string]any{"B": "Zmlyc3U="} })
	if e, err := s.Read(t.Context(), "k"); err != nil || !e.Unproven {
		t.Errorf("edited: got %+v, %v", e, err)
	}
	fake.Edit(table, "k", func(item map[string]map[string]any) { delete(item, "version") })
	e, err := s.Read(t.Context(), "k")
	if err != nil || e.Absent() || e.Notice == nil {
		t.Errorf("foreign: got %+v, %v", e, err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "k", e.Version, []byte("second")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a foreign item was replaced: %v", err)
	}
}

// TestExpiredCredentials: a session that ended is a denial, and new credentials work at once.
func TestExpiredCredentials(t *testing.T) {
	user := "first"
	fake, s := fakeStore(t, func(o *dynamodb.Options) { o.Credentials = provider(&user) })
	fake.Allow("first", "secret", dynamofake.All...)
	fake.Allow("second", "secret", dynamofake.All...)
	v, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
	fake.Expire("first")
	if _, err := s.CompareAndSwap(t.Context(), "k", v, []byte("second")); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("expired: got %v", err)
	}
	user = "second"
	_, err = s.CompareAndSwap(t.Context(), "k", v, []byte("second"))
	must(t, err)
}

// provider has the credentials of the user that it points to.
func provider(user *string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: *user, SecretAccessKey: "secret"}, nil
	})
}

// TestWrongClock: the error of a refused time names the clock, and is no denial. The next request
// with the right time works.
func TestWrongClock(t *testing.T) {
	_, s := fakeStore(t, func(o *dynamodb.Options) { o.HTTPSignerV4 = &late{Signer: v4.NewSigner()} })
	if _, err := s.Read(t.Context(), "k"); err == nil || errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "clock") {
		t.Errorf("got %v", err)
	}
	_, err := s.CompareAndSwap(t.Context(), "k", "", []byte("first"))
	must(t, err)
}

// late signs the first request an hour late.
type late struct {
	*v4.Signer
	signed int
}

// SignHTTP signs a request.
func (l *late) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request,
	hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	if l.signed++; l.signed == 1 {
		at = at.Add(-time.Hour)
	}
	return l.Signer.SignHTTP(ctx, c, r, hash, service, region, at, opts...)
}

// TestFindings: each unsafe setting is reported.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		setting  string
		severity driver.Severity
		change   map[string]any
	}{
		{"Replicas", driver.Unsafe, map[string]any{"GlobalTableVersion": "2019.11.21"}},
		{"KeySchema", driver.Unsafe, map[string]any{"AttributeDefinitions": []any{map[string]string{"AttributeName": "election", "AttributeType": "N"}}}},
		{"TableId", driver.Unsafe, map[string]any{"TableId": ""}},
		{"BillingMode", driver.Warning, map[string]any{
			"BillingModeSummary": nil, "ProvisionedThroughput": map[string]int{"ReadCapacityUnits": 100, "WriteCapacityUnits": 1},
		}},
		{"OnDemandThroughput", driver.Warning, map[string]any{"OnDemandThroughput": map[string]int{"MaxWriteRequestUnits": 1}}},
		{"DeletionProtectionEnabled", driver.Advice, nil},
		{"TableClass", driver.Advice, map[string]any{"TableClassSummary": map[string]string{"TableClass": "STANDARD_INFREQUENT_ACCESS"}}},
	} {
		fake, s := fakeStore(t)
		fake.Describe(table, c.change)
		found, err := s.Inspect(t.Context(), time.Minute)
		must(t, err)
		i := slices.IndexFunc(found, func(f driver.Finding) bool { return f.Setting == c.setting })
		if i < 0 || found[i].Severity != c.severity || found[i].Remedy == "" {
			t.Errorf("%s: got %v", c.setting, found)
		}
	}
	fake, s := fakeStore(t)
	fake.Describe(table, map[string]any{"DeletionProtectionEnabled": true})
	if found, err := s.Inspect(t.Context(), time.Minute); err != nil || len(found) > 0 {
		t.Errorf("a sound table: got %v, %v", found, err)
	}
}
