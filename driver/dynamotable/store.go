package dynamotable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
	"github.com/tenure-go/tenure/driver/seal"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// KeyAttribute is the name of the partition key, a string, that a table must have.
const KeyAttribute = "election"

// The other attributes of an item.
const (
	recordAttribute  = "record"
	versionAttribute = "version"
	tableAttribute   = "table"
)

// probeKey is the item on which a store checks that the server evaluates conditions.
const probeKey = ".tenure-probe"

// Store is the elections of one table. It must be made by New. Its methods may be called from many
// goroutines. It does not need to be closed.
type Store struct {
	client *dynamodb.Client
	name   string
	table  table
}

// New returns the elections in a table, over a client that stays the caller's. Each call overrides
// only the client's retries, and follows no redirects. New sends no request. It returns an error if
// the client is nil or has no region, which signatures need, or if no table can have the name.
func New(client *dynamodb.Client, table string) (*Store, error) {
	switch {
	case client == nil:
		return nil, errors.New("dynamotable: the client is nil")
	case client.Options().Region == "":
		return nil, errors.New("dynamotable: no region is known, and requests are signed for one: set AWS_REGION, " +
			"or pass the region when making the client")
	}
	if err := CheckName(table); err != nil {
		return nil, fmt.Errorf("dynamotable: %w", err)
	}
	return &Store{client: client, name: table}, nil
}

// CheckName returns an error unless a table can have the name: 3 to 255 letters, digits, hyphens,
// underscores and dots.
func CheckName(table string) error {
	odd := strings.ContainsFunc(table, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	})
	if odd || len(table) < 3 || len(table) > 255 {
		return fmt.Errorf("table %.80q: a table has a name of 3 to 255 letters, digits, hyphens, underscores and dots", table)
	}
	return nil
}

// once makes a call one request, with any settings of the client. A redirect would send it again.
// The client library's own client for HTTP repeats no request with a body, as all of these are.
func once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	if client, ok := o.HTTPClient.(*http.Client); ok {
		o.HTTPClient = object.WithoutRedirects(client)
	}
}

// Read returns the state of the cell. The caller may keep the value; if the record is longer than
// driver.MaxValue, the value is its first driver.MaxValue + 1 bytes. Floor is the service's clock
// in milliseconds, cut off to whole seconds. An item without the attributes of a record is a
// foreign value, which no write replaces.
//
// It returns an error that wraps driver.ErrDenied if rights or valid credentials are missing, one
// that wraps driver.ErrUnfit if the table cannot hold elections, the error of CheckKey, and any
// other error if the state is not known. The text names a missing table or a wrong clock.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.read(ctx, key)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("dynamotable: read %s: %w", s.place(key), err)
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	if err := object.Ready(ctx, s, key); err != nil {
		return driver.Entry{}, err
	}
	id, err := s.id(ctx, fresh)
	if err != nil {
		return driver.Entry{}, err
	}
	proved := s.table.proves(id)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.name, Key: itemKey(key), ConsistentRead: aws.Bool(true),
	}, once)
	if err != nil {
		return driver.Entry{}, s.explain("dynamodb:GetItem", err)
	}
	e := driver.Entry{Ceiling: latest, Era: era(id)}
	if date, ok := middleware.GetServerTime(out.ResultMetadata); ok {
		e.Floor = uint64(max(0, date.UnixMilli()))
	}
	fill(&e, key, id, out.Item)
	e.Unproven = e.Unproven || !e.Absent() && !proved
	return e, nil
}

// latest is in the year 2109, in milliseconds: no candidate takes a term above it, also where a
// server's clock is far behind that of others.
const latest = 1 << 42

// errForeign is the notice of an item that another program wrote.
var errForeign = errors.New("the item has no attributes record and version: another program uses this key")

// fill takes the state of an item.
func fill(e *driver.Entry, key, id string, item map[string]types.AttributeValue) {
	if len(item) == 0 {
		return
	}
	record, _ := item[recordAttribute].(*types.AttributeValueMemberB)
	if record == nil || len(record.Value) == 0 || text(item, versionAttribute) == "" {
		e.Value, e.Notice = []byte("an item of another program"), errForeign
		return
	}
	v := version{text(item, versionAttribute), id}
	e.Value, e.Version = record.Value[:min(len(record.Value), driver.MaxValue+1)], v.version()
	e.Unproven = text(item, tableAttribute) != id || !seal.Unbroken(v.stamp, key, record.Value)
}

// text returns an attribute that is a string.
func text(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func itemKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: key}}
}

// version is a driver.Version: the stamp that the writer has drawn, and the id of the table in
// which the state was read or written. The id has no spaces.
type version struct{ stamp, id string }

func (v version) version() driver.Version { return driver.Version(v.stamp + " " + v.id) }

func parseVersion(v driver.Version) version {
	at := strings.LastIndexByte(string(v), ' ') // a stamp that was edited by hand may have spaces
	if at < 0 {
		return version{stamp: string(v)}
	}
	return version{string(v[:at]), string(v[at+1:])}
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value. A version that was read in
// another table of this name is a conflict.
//
// It returns an error that wraps driver.ErrConflict if the version was different or is gone; one
// that wraps driver.ErrDenied if rights or valid credentials are missing; one that wraps
// driver.ErrUnfit if the table or the server cannot hold elections, when the cell was not written;
// and the error of CheckKey, when nothing was sent. Any other error leaves open whether the value
// was or will be written.
func (s *Store) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	v, err := s.swap(ctx, key, parseVersion(prev), slices.Clone(value))
	if err != nil {
		return "", fmt.Errorf("dynamotable: compare and swap %s: %w", s.place(key), err)
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key string, prev version, value []byte) (driver.Version, error) {
	if err := object.Ready(ctx, s, key); err != nil {
		return "", err
	}
	id, err := s.id(ctx, proof)
	if err != nil {
		return "", err
	}
	if prev.stamp != "" && prev.id != id {
		return "", fmt.Errorf("%w: the table was recreated", driver.ErrConflict)
	}
	if !s.table.heeds() {
		if err := s.checkConditions(ctx); err != nil {
			return "", err
		}
	}
	stamp := seal.New(key, value)
	in := s.put(key, stamp, id, value)
	expect(in, prev.stamp)
	if _, err := s.client.PutItem(ctx, in, once); err != nil {
		return "", s.explain("dynamodb:PutItem", err)
	}
	return version{stamp, id}.version(), nil
}

// expect sets the condition of a write: the item has the version, or there is none if that is "".
func expect(in *dynamodb.PutItemInput, stamp string) {
	if stamp == "" {
		in.ExpressionAttributeNames = map[string]string{"#k": KeyAttribute}
		in.ConditionExpression = aws.String("attribute_not_exists(#k)")
		return
	}
	in.ExpressionAttributeNames = map[string]string{"#v": versionAttribute}
	in.ExpressionAttributeValues = map[string]types.AttributeValue{":prev": &types.AttributeValueMemberS{Value: stamp}}
	in.ConditionExpression = aws.String("#v = :prev")
}

func (s *Store) put(key, stamp, id string, value []byte) *dynamodb.PutItemInput {
	item := itemKey(key)
	item[recordAttribute] = &types.AttributeValueMemberB{Value: value}
	item[versionAttribute] = &types.AttributeValueMemberS{Value: stamp}
	item[tableAttribute] = &types.AttributeValueMemberS{Value: id}
	return &dynamodb.PutItemInput{TableName: &s.name, Item: item}
}

// checkConditions makes two or three writes to an item of its own, two of which the server must
// refuse: one creates an item that exists, and one replaces a version that it never had. Checks of
// other processes do not disturb it, since the item stays.
func (s *Store) checkConditions(ctx context.Context) error {
	for range 2 {
		if heeded, err := s.probe(ctx, ""); err != nil || heeded {
			return cmp.Or(err, s.violate(ctx))
		}
	}
	return unfit("an item is overwritten under the condition that it does not exist: two candidates can both begin an election")
}

// violate writes under a condition that no item meets.
func (s *Store) violate(ctx context.Context) error {
	heeded, err := s.probe(ctx, "never")
	if err != nil {
		return err
	}
	s.table.heed(heeded)
	if !heeded {
		return unfit("the server replaces an item although the condition names another version: an old leader overwrites the " +
			"record of the new one")
	}
	return nil
}

// probe writes the item of the check. An error leaves open how the server treats conditions.
func (s *Store) probe(ctx context.Context, prev string) (heeded bool, err error) {
	in := s.put(probeKey, "probe", "none", []byte("candidates of Tenure check on this item that the server evaluates conditions"))
	expect(in, prev)
	if _, err = s.client.PutItem(ctx, in, once); err == nil {
		return false, nil
	}
	if err = s.explain("dynamodb:PutItem", err); errors.Is(err, driver.ErrConflict) {
		return true, nil
	}
	return false, fmt.Errorf("check, by a write to item %s, that the server evaluates conditions: %w", probeKey, err)
}

func unfit(problem string) error {
	return fmt.Errorf("%w: ConditionExpression: %s; hold elections on DynamoDB itself", driver.ErrUnfit, problem)
}

// CheckRights returns an error that wraps driver.ErrDenied if the right to write the table is
// missing, ErrUnfit if a write would return that, and any other error if there was no answer. It
// writes to the item .tenure-probe under a condition that no item meets, which changes nothing. So
// it does not notice a policy that denies only the item of this key.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	err := object.Ready(ctx, s, key)
	if err == nil {
		_, err = s.id(ctx, proof)
	}
	if err == nil {
		err = s.violate(ctx)
	}
	if err != nil {
		return fmt.Errorf("dynamotable: check the right to write %s: %w", s.place(key), err)
	}
	return nil
}

// place formats a key for a message.
func (s *Store) place(key string) string { return fmt.Sprintf("item %.200q in table %s", key, s.name) }

// MinLease returns 2 s: a request usually takes some 10 ms, and now and then a second.
func (*Store) MinLease() time.Duration { return 2 * time.Second }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (*Store) MaxLease() time.Duration { return driver.MaxLease }

// maxKey is DynamoDB's limit on a partition key in bytes.
const maxKey = 2048

// CheckKey returns an error unless the key is UTF-8 text of 1 to 2,048 bytes without control
// characters, other than .tenure-probe.
func (*Store) CheckKey(key string) error {
	if key == probeKey {
		return fmt.Errorf("key %s: this item is for the store's own check", key)
	}
	return driver.CheckText(key, maxKey)
}

// Limits returns the limits of leases and keys in every table. It sends nothing.
func Limits() driver.Bounded { return (*Store)(nil) }
