package dynamotable_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/dynamotable"
)

func Example() {
	// In a program, config.LoadDefaultConfig finds the region and credentials.
	client := dynamodb.NewFromConfig(aws.Config{Region: "eu-central-1"})
	store, err := dynamotable.New(client, "elections")
	if err != nil {
		log.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	_ = e.Run(context.Background(), func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		return ctx.Err()
	})
}
