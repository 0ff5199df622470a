package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tenure-go/tenure/driver"
)

// Inspect checks the settings of the table that elections rely on, by one DescribeTable. A table
// that cannot hold elections is an Unsafe finding. Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	d, err := s.describe(ctx)
	switch {
	case errors.Is(err, driver.ErrUnfit):
		setting, problem, _ := strings.Cut(strings.TrimPrefix(err.Error(), driver.ErrUnfit.Error()+": "), ": ")
		problem, remedy, _ := strings.Cut(problem, "; ")
		return []driver.Finding{{Severity: driver.Unsafe, Setting: setting, Problem: problem, Remedy: remedy}}, nil
	case err != nil:
		return nil, fmt.Errorf("dynamotable: inspect table %s: %w", s.name, err)
	}
	return judge(s.name, d), nil
}

// atLeast is the capacity that a few elections need, in units a second.
const atLeast = 5

// judge returns the findings about a table that can hold elections.
func judge(name string, d *types.TableDescription) (found []driver.Finding) {
	find := func(severity driver.Severity, setting, problem, remedy string) {
		found = append(found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
	}
	update := "aws dynamodb update-table --table-name " + name
	if p := d.ProvisionedThroughput; p != nil && !onDemand(d) &&
		min(aws.ToInt64(p.WriteCapacityUnits), aws.ToInt64(p.ReadCapacityUnits)) < atLeast {
		find(driver.Warning, "BillingMode", fmt.Sprintf("it is PROVISIONED with less than %d units a second: renewals that are throttled "+
			"can cost the lease", atLeast), update+" --billing-mode PAY_PER_REQUEST")
	}
	if o := d.OnDemandThroughput; o != nil && (limited(o.MaxWriteRequestUnits) || limited(o.MaxReadRequestUnits)) {
		find(driver.Warning, "OnDemandThroughput", fmt.Sprintf("it allows less than %d units a second: renewals that are throttled can cost "+
			"the lease", atLeast), update+" --on-demand-throughput MaxReadRequestUnits=-1,MaxWriteRequestUnits=-1")
	}
	if !aws.ToBool(d.DeletionProtectionEnabled) {
		find(driver.Advice, "DeletionProtectionEnabled", "it is false: if the table is deleted, no member leads until it is there again",
			update+" --deletion-protection-enabled")
	}
	if c := d.TableClassSummary; c != nil && c.TableClass == types.TableClassStandardInfrequentAccess {
		find(driver.Advice, "TableClass", "it is STANDARD_INFREQUENT_ACCESS: each request costs more", update+" --table-class STANDARD")
	}
	return found
}

func limited(units *int64) bool { return units != nil && 0 < *units && *units < atLeast }

func onDemand(d *types.TableDescription) bool {
	return d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode == types.BillingModePayPerRequest
}

// Keys returns the sorted keys of all items that hold a value, by a scan of the table, which is
// billed for its whole size. It needs dynamodb:Scan. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	var all []string
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName: &s.name, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#k"),
		ExpressionAttributeNames: map[string]string{"#k": KeyAttribute},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, once)
		if err != nil {
			return nil, fmt.Errorf("dynamotable: list the items of table %s: %w", s.name, s.explain("dynamodb:Scan", err))
		}
		for _, item := range page.Items {
			if key := text(item, KeyAttribute); s.CheckKey(key) == nil {
				all = append(all, key)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
