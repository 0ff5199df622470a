package azureblob_test

import (
	"context"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/azureblob"
)

// Credentials are those of the environment, such as a managed identity. The example needs an
// account, so it does not run as a test.
func Example() {
	ctx := context.Background()
	store, err := azureblob.FromEnvironment("myaccount", "my-container", azureblob.WithPrefix("elections"))
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
