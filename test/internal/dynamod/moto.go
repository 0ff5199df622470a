package dynamod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/tools"
)

// motoVersion is that of moto, which imitates DynamoDB's conditions independently of this project.
const motoVersion = "5.2.5"

// installMoto returns the directory of its Python packages.
func installMoto(ctx context.Context) (string, error) {
	return tools.Dir("dynamodb", "moto-"+motoVersion, func(fresh string) (string, error) {
		return fresh, tools.Run(exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet",
			"--target", fresh, "moto[server,dynamodb]=="+motoVersion))
	})
}

// motoServer is a table on moto.
type motoServer struct{ rig.Emulator }

func startMoto(ctx context.Context, dir string) (rig.Emulator, error) {
	packages, err := installMoto(ctx)
	if err != nil {
		return rig.Emulator{}, err
	}
	return rig.StartEmulator(dir, func(port int) *process.Process {
		return &process.Process{
			Command: []string{"python3", "-m", "moto.server", "-H", ports.Host, "-p", strconv.Itoa(port)}, Env: []string{"PYTHONPATH=" + packages},
		}
	}, create)
}

// create makes the table. It succeeds if an earlier call did so, without an answer in time.
func create(ctx context.Context, address string) error {
	_, err := Client(address, inVirginia).CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(Table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("election"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("election"), KeyType: types.KeyTypeHash}},
	})
	var exists *types.ResourceInUseException
	if errors.As(err, &exists) {
		return nil
	}
	return err
}

// inVirginia names a region that moto knows.
func inVirginia(o *dynamodb.Options) { o.Region = "us-east-1" }

// Open connects over a relay.
func (m motoServer) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r := rig.Relay(t, m.URL())
	return NewStore(t, r.Address(), Table, inVirginia, func(o *dynamodb.Options) { o.HTTPClient = identified{o.HTTPClient} }), r
}

// Kit removes items.
func (m motoServer) Kit(testing.TB) drivertest.Harness {
	remove := func(ctx context.Context, key string) error {
		_, err := Client(m.Address(), inVirginia).DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: aws.String(Table), Key: map[string]types.AttributeValue{"election": &types.AttributeValueMemberS{Value: key}},
		})
		return err
	}
	return drivertest.Harness{Delete: remove, Purge: remove, FloorTick: time.Second}
}

// identified adds the table's id to descriptions, since moto knows none. One table is all that the
// server ever has.
type identified struct{ dynamodb.HTTPClient }

// Do sends a request.
func (c identified) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.HTTPClient.Do(r)
	if err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeTable") || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	defer func() { _ = answer.Body.Close() }()
	var described struct{ Table map[string]any }
	if err := json.NewDecoder(answer.Body).Decode(&described); err != nil {
		return nil, err
	}
	described.Table["TableId"] = "00000000-0000-0000-0000-000000000001"
	body, err := json.Marshal(described)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("X-Amz-Crc32") // of the former body
	return answer, err
}
