package s3object_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/s3object"
)

// Credentials and region come from the environment, as for all AWS tools. The example needs a
// bucket, so it does not run as a test.
func Example() {
	ctx := context.Background()
	store, err := s3object.FromEnvironment(ctx, "my-bucket", s3object.WithPrefix("elections"))
	if err != nil {
		panic(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		panic(err)
	}
	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		log.Print("leading, token ", term.Token())
		<-ctx.Done() // work here
		return nil
	})
	log.Print("done: ", err)
}

// A client of your own follows the files of AWS's tools. Keys that come from elsewhere need a
// provider of credentials that looks for them again, such as aws.CredentialsProviderFunc.
func ExampleLoadConfig() {
	report := func(err error) { log.Print("the last keys stay in use: ", err) }
	cfg, err := s3object.LoadConfig(context.Background(), report)
	if err != nil {
		panic(err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	store, err := s3object.New(client, "my-bucket")
	if err != nil {
		panic(err)
	}
	_ = store
}
