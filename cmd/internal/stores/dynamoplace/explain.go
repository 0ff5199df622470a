package dynamoplace

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/awstools"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/dynamotable"
)

// Explain returns the error for a table that cannot be used. The driver's errors have remedies.
// Hints add the settings of the command, and documents.
func (d *Place) Explain(err error) *fault.Error {
	switch status, code := awstools.Look(err); {
	case errors.Is(err, driver.ErrUnfit):
		return fault.New(kind.OtherStores, "%w", err)
	case code == "ResourceNotFoundException":
		return fault.New(kind.MadeBy(d.make()), "there is no table %s", d.Table)
	case code == "AccessDeniedException", code == "" && errors.Is(err, driver.ErrDenied):
		return fault.New("docs/dynamodb.md has a policy that is enough for a candidate", "%w", err)
	case status == 0 && code == "":
		f := fault.New("check the region and endpoint= in the URL, and that no firewall is in between", "no server answers: %w", kind.Root(err))
		f.Passing = kind.Away(err)
		return f
	case strings.Contains(code, "Thrott"), strings.Contains(code, "Exceeded"), status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError:
		return fault.Passing("", "%w", err)
	}
	return fault.New("", "%w", err)
}

// make is the command that makes the table.
func (d *Place) make() string {
	return "aws dynamodb create-table --table-name " + d.Table + " --attribute-definitions AttributeName=" + dynamotable.KeyAttribute +
		",AttributeType=S --key-schema AttributeName=" + dynamotable.KeyAttribute + ",KeyType=HASH --billing-mode PAY_PER_REQUEST" + d.flags()
}

// create makes the table if it is missing. It ignores other errors, since reading a record reports
// them better.
func (d *Place) create(ctx context.Context, client *dynamodb.Client) error {
	if err := awstools.LogIn(ctx, client.Options().Credentials); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kind.CreateWithin)
	defer cancel()
	look := &dynamodb.DescribeTableInput{TableName: &d.Table}
	var missing *types.ResourceNotFoundException
	if _, err := client.DescribeTable(ctx, look); !errors.As(err, &missing) {
		return nil
	}
	key := aws.String(dynamotable.KeyAttribute)
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &d.Table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: key, KeyType: types.KeyTypeHash}},
	})
	var inUse *types.ResourceInUseException
	switch _, code := awstools.Look(err); {
	case err == nil, errors.As(err, &inUse):
	case code == "AccessDeniedException":
		return fault.New("grant dynamodb:CreateTable, or ask an operator to make it with: "+d.make(), "table %s cannot be made: %w", d.Table, err)
	default:
		return d.Explain(err).Behind("table " + d.Table + " cannot be made")
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(ctx, look, kind.CreateWithin); err != nil {
		return fault.Passing("wait a while and try again", "table %s was made, but is not there yet: %w", d.Table, err)
	}
	return nil
}
