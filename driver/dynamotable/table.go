package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tenure-go/tenure/driver"
)

const (
	// fresh is how old the id of the table may be for a read.
	fresh = 5 * time.Second
	// proof is for how long an answer proves that the items are not those of a restored table: no
	// restore takes less. It is also how old the id may be for a write. A write that names the id
	// of a former table is safe, because readers see the difference.
	proof = time.Minute
	// lookWithin bounds the look at the table while an earlier id is known, so that DescribeTable
	// can fail alone.
	lookWithin = time.Second
)

// table holds the id of the table, and the knowledge of its server.
type table struct {
	mu     sync.Mutex
	id     string // empty: it is not known
	looked time.Time
	proved time.Time // when the request was sent whose answer had the id
	gone   uint64    // counts the answers that the table is missing
	heeded bool      // the server evaluates conditions
}

func (t *table) heeds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heeded
}

func (t *table) heed(heeded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heeded = heeded
}

// missing forgets the id: a table of this name that is there later is another one.
func (t *table) missing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id = ""
	t.gone++
}

// known returns the id, and whether the caller must look at the table because the id is unknown or
// older than most. While an id is known, only one caller at a time must.
func (t *table) known(most time.Duration) (id string, look bool, gone uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	look = t.id == "" || time.Since(t.looked) > most
	if look {
		t.looked = time.Now()
	}
	return t.id, look, t.gone
}

// learn takes an id, unless the table was found missing since its request was sent.
func (t *table) learn(id string, gone uint64, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if gone == t.gone {
		t.id, t.proved = id, sent
	}
}

// proves reports whether an item that names the id is of this table. An id from before a pause, or
// before an outage of DescribeTable, may be that of a table which was restored since.
func (t *table) proves(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id == id && time.Since(t.proved) < proof
}

// id returns the id of the table, after a look at the table if the last one is older than most. It
// returns an error if the table cannot hold elections, and if no id is known.
func (s *Store) id(ctx context.Context, most time.Duration) (string, error) {
	id, look, gone := s.table.known(most)
	if !look {
		return id, nil
	}
	within := ctx
	if id != "" {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, lookWithin)
		defer cancel()
	}
	sent := time.Now()
	d, err := s.describe(within)
	switch {
	case err == nil:
		s.table.learn(aws.ToString(d.TableId), gone, sent)
		return aws.ToString(d.TableId), nil
	case id == "" || errors.Is(err, driver.ErrUnfit) || isMissing(err) || ctx.Err() != nil:
		return "", err
	}
	return id, nil
}

// describe returns the description of a table that can hold elections.
func (s *Store) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.name}, once)
	if err != nil {
		return nil, s.explain("dynamodb:DescribeTable", err)
	}
	d := out.Table
	switch {
	case d == nil || aws.ToString(d.TableId) == "":
		return nil, fmt.Errorf("%w: TableId: the server describes no id of the table, so a restored table would pass for the "+
			"former one; hold elections on DynamoDB itself", driver.ErrUnfit)
	case aws.ToString(d.GlobalTableVersion) != "" || len(d.Replicas) > 0:
		return nil, fmt.Errorf("%w: Replicas: table %s is a global table, in which each region checks conditions against its own "+
			"copy: two candidates can lead at once; make a table in one region", driver.ErrUnfit, s.name)
	case !fits(d):
		return nil, fmt.Errorf("%w: KeySchema: table %s must have the partition key %s of type S (string), and no sort key; %s",
			driver.ErrUnfit, s.name, KeyAttribute, s.remedy())
	}
	return d, nil
}

// fits reports whether the table has the right key.
func fits(d *types.TableDescription) bool {
	if len(d.KeySchema) != 1 || aws.ToString(d.KeySchema[0].AttributeName) != KeyAttribute {
		return false
	}
	for _, a := range d.AttributeDefinitions {
		if aws.ToString(a.AttributeName) == KeyAttribute {
			return a.AttributeType == types.ScalarAttributeTypeS
		}
	}
	return false
}

// remedy is the command that makes the table.
func (s *Store) remedy() string {
	return fmt.Sprintf("make it with: aws dynamodb create-table --table-name %s --attribute-definitions AttributeName=%s,AttributeType=S "+
		"--key-schema AttributeName=%[2]s,KeyType=HASH --billing-mode PAY_PER_REQUEST", s.name, KeyAttribute)
}

// era makes a number of a table's id.
func era(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return max(h.Sum64(), 1)
}
